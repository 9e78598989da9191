//! Writes the function that a worker calls: decode, inject, call, and tell the runtime what came of it.
//!
//! The `?`s in it see only the runtime's own error, never the user's. The return type is asked for one
//! trait at a time (what it splits into, then each part), because the compiler reports the deepest missing
//! trait of a bound, which would be a stranger to the user.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{local, output_type, place_of};
use crate::model::{Arg, Field, Injected, Job};

/// `fn __job_run`
pub(crate) fn run(job: &Job) -> TokenStream {
    let Job {
        payload: payload_type,
        function,
        ..
    } = job;
    let (context, payload, call) = (local("cx"), local("payload"), local("call"));
    let injected: Vec<_> = (0..job.arguments.len())
        .map(|i| local(&format!("injected_{i}")))
        .collect();
    let injections = job
        .arguments
        .iter()
        .zip(&injected)
        .filter_map(|(argument, name)| match argument {
            Arg::Injected(Injected { ty, .. }) => {
                Some(quote!(let #name = <#ty as __q::Inject>::inject(#context)?;))
            }
            Arg::Payload(_) => None,
        });
    let passed = job
        .arguments
        .iter()
        .zip(&injected)
        .map(|(argument, name)| match argument {
            Arg::Injected(_) => quote!(#name),
            Arg::Payload(Field {
                ident,
                is_str: true,
                ..
            }) => quote!(&#payload.#ident),
            Arg::Payload(Field { ident, .. }) => quote!(#payload.#ident),
        });
    // A future that is not `Send` is reported here, at the function's name and nowhere else.
    let here = Span::call_site().located_at(function.span());
    let pinned = quote_spanned!(here=> __q::Box::pin(#function(#(#passed),*)));
    let returned = Returned::new(output_type(job.output.as_ref()));
    let split = returned.split(&call);
    let into_value = into_value(job, &returned);
    let class = class(job, &returned);
    let into_error = returned.method("Err", "IntoJobError", "into_job_error");
    quote! {
        fn __job_run<'a>(#context: &'a __q::RunCx) -> __q::BoxFuture<'a, __q::RunResult> {
            __q::Box::pin(async move {
                let #payload: #payload_type = __q::decode(#context)?;
                #(#injections)*
                let #call: __q::BoxFuture<'_, _> = #pinned;
                __q::ended(#split, #into_value, #class, #into_error)
            })
        }
    }
}

/// The return type with tokens around it that make the compiler underline all of it, and nothing else.
struct Returned {
    ty: TokenStream,
    first: Span,
    last: Span,
}

impl Returned {
    fn new(ty: TokenStream) -> Self {
        let mut spans = ty.clone().into_iter().map(|token| token.span());
        let first = spans.next().unwrap_or_else(Span::call_site);
        let last = spans.last().unwrap_or(first);
        Self { ty, first, last }
    }

    /// `<Ret as JobReturn>::which`
    fn part(&self, which: &str) -> TokenStream {
        let ty = &self.ty;
        let open = quote_spanned!(self.first=> <);
        let which = Ident::new(which, self.last);
        let close = quote_spanned!(self.last=> >::#which);
        quote!(#open #ty as __q::JobReturn #close)
    }

    /// `<Ret as JobReturn>::split(call.await)`
    fn split(&self, call: &Ident) -> TokenStream {
        let split = self.part("split");
        let awaited = quote_spanned!(self.last=> (#call.await));
        quote!(#split #awaited)
    }

    /// `<<Ret as JobReturn>::Ok as Trait>::method`
    fn method(&self, which: &str, of: &str, method: &str) -> TokenStream {
        let part = self.part(which);
        let [of, method] = [of, method].map(|name| Ident::new(name, Span::call_site()));
        quote!(<#part as __q::#of>::#method)
    }
}

/// A function from the value of a success to what the runtime is handed of it.
fn into_value(job: &Job, returned: &Returned) -> TokenStream {
    if job.keys.cache_broken {
        return quote!(|_| __q::Ok(__q::JobValue::default()));
    }
    let output = match job.keys.cache {
        Some(_) => "RefreshedOutput",
        None if job.returns_refreshed => "UncachedOutput",
        None => "JobOutput",
    };
    returned.method("Ok", output, "into_value")
}

/// A function from an error to its class: by `retry_if`, by `Classify` if the error implements it,
/// or none.
fn class(job: &Job, returned: &Returned) -> TokenStream {
    let error = local("error");
    match &job.retry_if {
        Some(path) => {
            let decide = local("retry_if");
            let err = returned.part("Err");
            let signature = quote_spanned!(place_of(path)=> fn(&#err) -> bool);
            quote!(|#error| {
                let #decide: #signature = #path;
                __q::Some(if #decide(#error) { __q::Class::Retry } else { __q::Class::Permanent })
            })
        }
        // Method lookup prefers the impl that exists only for errors with `Classify`.
        None => quote!(|#error| {
            use __q::{ByClassify as _, ByDefault as _};
            (&__q::Probe(#error)).class()
        }),
    }
}
