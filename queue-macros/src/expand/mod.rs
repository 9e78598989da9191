//! Writes the items of a valid job.
//!
//! Expansion never fails: everything that could be wrong was found before. What a reader of the expanded
//! code meets, in order: the function, the payload struct, the marker of the function's name, and a hidden
//! constant with the registration. Everything the code needs from elsewhere it takes from the runtime's
//! `private` module, so names that the user shadows do no harm.
//!
//! Two rules about spans hold everywhere. Local variables are `mixed_site`, so that neither user code nor
//! a `macro_rules!` around the job can meet them. A type of the user keeps its own spans wherever a trait
//! is asked of it, so that the compiler's error points at the user's words.

mod payload;
mod handle;
mod def;
mod job_impl;
mod run;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Path, Type};

use crate::model::{Field, Job};

/// The generated items of `job`, the function excepted.
pub(crate) fn items(job: &Job) -> TokenStream {
    let Job { runtime, cfgs, .. } = job;
    let payload = payload::payload(job);
    let handle = handle::handle(job);
    let def = def::def(job);
    let job_impl = job_impl::job_impl(job);
    let run = run::run(job);
    quote! {
        #payload
        #handle
        #(#cfgs)*
        #[allow(deprecated, unused_imports, unused_variables, clippy::type_complexity)]
        const _: () = {
            use #runtime::private as __q;
            #def
            #job_impl
            #run
            __q::inventory::submit!(__q::Registration(&__JOB_DEF));
            const _: () = __q::abi_1();
        };
    }
}

/// A local variable or parameter that only generated code can name.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Where the compiler shall point when the function at `path` has another signature.
fn place_of(path: &Path) -> Span {
    let first = path.segments.first();
    let place = first.map_or_else(Span::call_site, |first| first.ident.span());
    Span::call_site().located_at(place)
}

/// The type of the struct's field; `string` is the path to `String` at that place.
fn stored_type(field: &Field, string: impl ToTokens) -> TokenStream {
    if field.is_str {
        string.to_token_stream()
    } else {
        field.written.to_token_stream()
    }
}

/// The function's return type, `()` if none is written.
fn output_type(output: Option<&Type>) -> TokenStream {
    output.map_or_else(|| quote!(()), ToTokens::to_token_stream)
}
