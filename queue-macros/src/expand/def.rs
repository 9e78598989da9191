//! Writes the static description of the job: its name, where it is, its policy and what it needs.
//!
//! Only what the attribute sets is written; defaults live in the runtime, in one place.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Path;

use syn::Member;
use syn::ext::IdentExt;

use super::{local, place_of, stored_type};
use crate::model::{
    Backoff, DedupeUntil, Field, Injected, Job, Key, KeyPath, Keys, OnDuplicate, Policy, Timeout,
};
use crate::spelling::spell;

/// `static __JOB_DEF`
pub(crate) fn def(job: &Job) -> TokenStream {
    let name = &job.name;
    let fields = job.fields().map(field);
    let needs = job.injected().map(|Injected { name, ty }| {
        quote! {
            __q::Need {
                argument: #name,
                type_name: <#ty as __q::Inject>::type_name,
                present: <#ty as __q::Inject>::present,
            }
        }
    });
    let policy = policy(&job.policy);
    let upcast = job.upcast.as_ref().map(upcast_call);
    let cache = job.keys.cache.as_ref().map(|_| quote!(.cache()));
    let keys = keys(&job.keys);
    let payload = &job.payload;
    quote! {
        static __JOB_DEF: __q::JobDef = __q::JobDef::new(
            #name,
            __job_run,
            __q::Source {
                package: ::core::env!("CARGO_PKG_NAME"),
                module: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        )
        .fields(&[#(#fields),*])
        .needs(&[#(#needs),*])
        .check(__q::check::<#payload>)
        #policy
        #keys
        #upcast
        #cache;
    }
}

fn field(field: &Field) -> TokenStream {
    let Field {
        stored,
        aliases,
        default,
        written,
        is_str,
        ..
    } = field;
    let text = if *is_str {
        "String".to_owned()
    } else {
        spell(written)
    };
    let aliases = (!aliases.is_empty()).then(|| quote!(.aliases(&[#(#aliases),*])));
    let default = default.as_ref().map(|_| quote!(.default()));
    let ty = stored_type(field, quote!(__q::String));
    quote! {
        __q::Field::new(#stored, #text, <#ty as __q::PayloadArg>::traced) #aliases #default
    }
}

/// What the keys are made of, as text.
fn keys(keys: &Keys) -> Option<TokenStream> {
    let Keys {
        dedupe,
        idempotency,
        cache,
        ..
    } = keys;
    if dedupe.is_none() && idempotency.is_none() && cache.is_none() {
        return None;
    }
    let [dedupe, idempotency, cache] = [dedupe, idempotency, cache].map(|key| match key {
        None => quote!(__q::None),
        Some(key) => {
            let text = key_text(key);
            quote!(__q::Some(#text))
        }
    });
    Some(quote!(.keys(#dedupe, #idempotency, #cache)))
}

fn key_text(key: &Key) -> String {
    match key {
        Key::Template(literal, _) => literal.value(),
        Key::List(paths) => {
            let paths = paths.iter().map(|KeyPath { field, rest, .. }| {
                let rest = rest.iter().map(|member| match member {
                    Member::Named(name) => format!(".{}", name.unraw()),
                    Member::Unnamed(index) => format!(".{}", index.index),
                });
                format!("{}{}", field.unraw(), rest.collect::<String>())
            });
            paths.collect::<Vec<_>>().join(", ")
        }
    }
}

fn policy(policy: &Policy) -> TokenStream {
    let Policy {
        aliases,
        queue,
        priority,
        retries,
        timeout,
        backoff,
        deadline,
        dedupe_until,
        on_duplicate,
        idempotency_for,
        schema,
    } = policy;
    let mut calls = TokenStream::new();
    if !aliases.is_empty() {
        calls.extend(quote!(.aliases(&[#(#aliases),*])));
    }
    calls.extend(queue.as_ref().map(|queue| quote!(.queue(#queue))));
    calls.extend(priority.map(|priority| quote!(.priority(#priority))));
    calls.extend(retries.map(|retries| quote!(.retries(#retries))));
    calls.extend(timeout.as_ref().map(timeout_call));
    calls.extend(backoff.as_ref().map(backoff_call));
    calls.extend(deadline.map(|deadline| {
        let deadline = time(deadline);
        quote!(.deadline(#deadline))
    }));
    calls.extend(dedupe_until.as_ref().map(dedupe_until_call));
    calls.extend(on_duplicate.map(on_duplicate_call));
    calls.extend(idempotency_for.map(|window| {
        let window = time(window);
        quote!(.idempotency_for(#window))
    }));
    calls.extend(schema.map(|schema| quote!(.schema(#schema))));
    calls
}

/// A coercion of its own makes a wrong signature one error, at the path.
fn upcast_call(path: &Path) -> TokenStream {
    let upcast = local("upcast");
    let signature = quote_spanned!(place_of(path)=> __q::Upcast);
    quote!(.upcast({ let #upcast: #signature = #path; #upcast }))
}

fn timeout_call(timeout: &Timeout) -> TokenStream {
    match timeout {
        Timeout::Never => quote!(.timeout(__q::None)),
        Timeout::After(limit) => {
            let limit = time(*limit);
            quote!(.timeout(__q::Some(#limit)))
        }
    }
}

fn backoff_call(backoff: &Backoff) -> TokenStream {
    match backoff {
        Backoff::Fixed {
            delay,
            jitter_percent,
        } => {
            let delay = time(*delay);
            quote!(.backoff(__q::Backoff::Fixed { delay: #delay, jitter_percent: #jitter_percent }))
        }
        Backoff::Exponential {
            base,
            max,
            jitter_percent,
        } => {
            let (base, max) = (time(*base), time(*max));
            quote!(.backoff(__q::Backoff::Exponential { base: #base, max: #max, jitter_percent: #jitter_percent }))
        }
    }
}

fn dedupe_until_call(until: &DedupeUntil) -> TokenStream {
    match until {
        DedupeUntil::Finished => quote!(.dedupe_until(__q::DedupeUntil::Finished)),
        DedupeUntil::Started => quote!(.dedupe_until(__q::DedupeUntil::Started)),
        DedupeUntil::Window(window) => {
            let window = time(*window);
            quote!(.dedupe_until(__q::DedupeUntil::Window(#window)))
        }
    }
}

fn on_duplicate_call(mode: OnDuplicate) -> TokenStream {
    match mode {
        OnDuplicate::Keep => quote!(.on_duplicate(__q::OnDuplicate::Keep)),
        OnDuplicate::Replace => quote!(.on_duplicate(__q::OnDuplicate::Replace)),
        OnDuplicate::Rerun => quote!(.on_duplicate(__q::OnDuplicate::Rerun)),
    }
}

fn time(duration: Duration) -> TokenStream {
    // Cannot be cut off: a parsed duration is at most a hundred years.
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    quote!(__q::Duration::from_millis(#millis))
}
