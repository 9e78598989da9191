//! Judges options against each other: what needs a partner, and what could never take effect.
//!
//! Only what cannot work in any run is refused. A time limit longer than the deadline, say, is fine: the
//! deadline ends no attempt that has begun. An option that is wrong by itself is not judged again here.

use std::time::Duration;

use super::chosen::Chosen;
use super::policy::{BACKOFF_DEFAULT, RETRIES_DEFAULT};
use super::signature::Signature;
use crate::errors::Errors;
use crate::model::{Arg, Backoff, DedupeUntil, Keys, OnDuplicate, Policy};

/// Reports every option that contradicts another, once, at the option that has to go.
pub(crate) fn together(
    chosen: &Chosen<'_>,
    policy: &Policy,
    keys: &mut Keys,
    signature: &Signature,
    errors: &mut Errors,
) {
    chosen.demand("dedupe_until", "dedupe", errors);
    chosen.demand("on_duplicate", "dedupe", errors);
    chosen.demand("idempotency_for", "idempotency", errors);
    chosen.demand("upcast", "schema", errors);
    upcast(chosen, policy, signature, errors);
    retries(chosen, policy, signature, errors);
    deadline(chosen, policy, errors);
    rerun(chosen, policy, errors);
    cache(chosen, keys, signature, errors);
}

fn upcast(chosen: &Chosen<'_>, policy: &Policy, signature: &Signature, errors: &mut Errors) {
    let Some(value) = chosen.value("upcast") else {
        return;
    };
    if policy.schema == Some(1) {
        errors.at(
            &value.written.key,
            "`upcast` reads payloads of a lower schema, and none is lower than 1; write the schema that \
             the payload has now, as in `schema = 2`",
        );
        return;
    }
    let is_payload = |argument: &Arg| matches!(argument, Arg::Payload(_));
    if signature.usable && policy.schema.is_some() && !signature.arguments.iter().any(is_payload) {
        errors.at(
            &value.written.key,
            "`upcast` has nothing to change, since this job has no payload; leave it out",
        );
    }
}

fn retries(chosen: &Chosen<'_>, policy: &Policy, signature: &Signature, errors: &mut Errors) {
    if policy.retries == Some(0) {
        for name in ["backoff", "retry_if"] {
            if let Some(value) = chosen.value(name) {
                errors.at(
                    &value.written.key,
                    format!(
                        "`{name}` has no effect with `retries = 0`, which means that nothing is tried \
                         again; leave one of them out"
                    ),
                );
            }
        }
    } else if let Some(value) = chosen.value("retry_if")
        && signature.usable
        && signature.output.is_none()
    {
        errors.at(
            &value.written.key,
            "`retry_if` judges errors, and this job returns none; write `-> Result<(), E>`, or leave it out",
        );
    }
}

/// A deadline that always passes before the first retry makes the retries a promise that nobody keeps.
fn deadline(chosen: &Chosen<'_>, policy: &Policy, errors: &mut Errors) {
    let (Some(value), Some(deadline)) = (chosen.value("deadline"), policy.deadline) else {
        return;
    };
    // One that was written and is not here is wrong by itself.
    let retries = policy
        .retries
        .or_else(|| chosen.value("retries").is_none().then_some(RETRIES_DEFAULT));
    let backoff = policy
        .backoff
        .or_else(|| chosen.value("backoff").is_none().then_some(BACKOFF_DEFAULT));
    let (Some(1..), Some(backoff)) = (retries, backoff) else {
        return;
    };
    let first = shortest_delay(backoff);
    if deadline <= first {
        errors.at(
            value.written.blame(),
            format!(
                "`deadline`: it is over before the first retry, which comes {first:?} after a failure at \
                 the earliest; write a longer one, a shorter `backoff`, or `retries = 0`"
            ),
        );
    }
}

/// The first delay with all its jitter taken off.
fn shortest_delay(backoff: Backoff) -> Duration {
    let (delay, jitter_percent) = match backoff {
        Backoff::Fixed {
            delay,
            jitter_percent,
        } => (delay, jitter_percent),
        Backoff::Exponential {
            base,
            jitter_percent,
            ..
        } => (base, jitter_percent),
    };
    delay * u32::from(100 - jitter_percent.min(100)) / 100
}

fn rerun(chosen: &Chosen<'_>, policy: &Policy, errors: &mut Errors) {
    let (Some(value), Some(OnDuplicate::Rerun)) =
        (chosen.value("on_duplicate"), policy.on_duplicate)
    else {
        return;
    };
    let why = match policy.dedupe_until {
        Some(DedupeUntil::Started) => {
            "with `dedupe_until = \"started\"` a job that runs holds no key, so the newcomer is stored in \
             any case and may run beside it"
        }
        Some(DedupeUntil::Window(_)) => {
            "a key that is held for a time stores no second job until the time is over"
        }
        Some(DedupeUntil::Finished) | None => return,
    };
    errors.at(
        value.written.blame(),
        format!(
            "`on_duplicate`: \"rerun\" keeps a job waiting behind the one that runs, but {why}; leave one \
             of the two options out"
        ),
    );
}

/// A job without a return type has no value to refresh an entry with; of another type only the compiler knows.
fn cache(chosen: &Chosen<'_>, keys: &mut Keys, signature: &Signature, errors: &mut Errors) {
    let (Some(value), Some(_)) = (chosen.value("cache"), &keys.cache) else {
        return;
    };
    if signature.usable && signature.output.is_none() {
        errors.at(
            &value.written.key,
            "a job with `cache` returns the refreshed value; write `-> Result<Refreshed<T>, E>`",
        );
        keys.cache_broken = true;
    }
}
