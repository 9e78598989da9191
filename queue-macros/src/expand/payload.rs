//! Writes the payload struct, one field per stored argument.
//!
//! It derives only what the attribute lists. Its `Debug` shows field names without values unless it is
//! derived, because payloads hold personal data and job frameworks log them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;

use super::{local, stored_type};
use crate::model::{Field, Job};

/// The struct and its `Debug`.
pub(crate) fn payload(job: &Job) -> TokenStream {
    let Job {
        runtime,
        cfgs,
        vis,
        payload,
        derives,
        ..
    } = job;
    let string = quote!(#runtime::private::String);
    let fields = job.fields().map(|field| {
        let Field { ident, docs, .. } = field;
        let ty = stored_type(field, &string);
        let plain = format!(" The job's argument `{}`.", ident.unraw());
        let docs = if docs.is_empty() {
            quote!(#[doc = #plain])
        } else {
            quote!(#(#docs)*)
        };
        quote!(#docs #vis #ident: #ty,)
    });
    let function = job.function.unraw();
    let doc = format!(
        " The payload of the job [`{function}`](fn@{function}), with its arguments as fields."
    );
    let derives = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
    let debug = redacted_debug(job);
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #derives
        #[allow(dead_code, nonstandard_style, private_interfaces, clippy::type_complexity)]
        #vis struct #payload { #(#fields)* }
        #debug
    }
}

fn redacted_debug(job: &Job) -> Option<TokenStream> {
    let Job { cfgs, payload, .. } = job;
    let is_debug = |path: &syn::Path| {
        path.segments
            .last()
            .is_some_and(|last| last.ident == "Debug")
    };
    if job.derives.iter().any(is_debug) {
        return None;
    }
    let names: Vec<String> = job
        .fields()
        .map(|field| format!("{}: ..", field.ident.unraw()))
        .collect();
    let text = match names.as_slice() {
        [] => payload.to_string(),
        _ => format!("{payload} {{ {} }}", names.join(", ")),
    };
    let formatter = local("f");
    Some(quote! {
        #(#cfgs)*
        impl ::core::fmt::Debug for #payload {
            fn fmt(&self, #formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #formatter.write_str(#text)
            }
        }
    })
}
