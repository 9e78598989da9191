//! Writes the marker that shares the function's name, so that `send_welcome::enqueue(..)` reads as one thing.
//!
//! A braced, empty struct lives in the type namespace and leaves the function callable in the value
//! namespace. Its two functions take the payload arguments as the function takes them, and their names
//! carry the span of the function's name: the compiler's notes then show the user's function.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;

use super::local;
use crate::model::{Field, Job};

/// The marker struct with `new` and `enqueue`.
pub(crate) fn handle(job: &Job) -> TokenStream {
    let Job {
        runtime,
        cfgs,
        vis,
        function,
        payload,
        ..
    } = job;
    let span = function.span();
    let (new, enqueue) = (Ident::new("new", span), Ident::new("enqueue", span));
    let queue = local("queue");
    let parameters: Vec<TokenStream> = job
        .fields()
        .map(|Field { ident, written, .. }| quote!(#ident: #written))
        .collect();
    let names = job.fields().map(|field| &field.ident);
    let values = job.fields().map(|Field { ident, is_str, .. }| {
        if *is_str {
            quote!(#ident: ::std::borrow::ToOwned::to_owned(#ident))
        } else {
            quote!(#ident)
        }
    });
    let name = function.unraw();
    let doc = format!(" Makes and enqueues jobs that run [`{name}`](fn@{name}).");
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #[allow(dead_code, nonstandard_style)]
        #[allow(missing_copy_implementations, missing_debug_implementations)]
        #vis struct #function {}
        #(#cfgs)*
        #[allow(dead_code, nonstandard_style, private_interfaces, clippy::all)]
        impl #function {
            /// Makes the payload of one job, to be enqueued later.
            #vis fn #new(#(#parameters),*) -> #payload {
                #payload { #(#values),* }
            }
            /// Starts to enqueue one job; nothing happens until the answer is awaited.
            #vis fn #enqueue<'q>(#queue: impl #runtime::private::EnqueueTarget<'q>, #(#parameters),*)
                -> #runtime::private::Enqueue<'q, #payload>
            {
                #runtime::private::Enqueue::new(#queue, Self::#new(#(#names),*))
            }
        }
    }
}
