//! Judges the options that are plain data: names, numbers, times and modes.

use proc_macro2::Ident;
use syn::LitStr;
use syn::ext::IdentExt;

use super::chosen::{Chosen, Value};
use super::values;
use crate::errors::Errors;
use crate::model::{Backoff, DedupeUntil, OnDuplicate, Policy, Timeout};
use crate::parse::backoff::{BackoffText, Kind, backoff};
use crate::parse::duration::DAYS_MAX as DURATION_DAYS_MAX;
use crate::suggest;

const RETRIES_MAX: i64 = 1_000;
const PRIORITY_MAX: i64 = 100;
const SCHEMA_MAX: i64 = 1_000_000;
/// The runtime schedules no further ahead.
const DEADLINE_DAYS_MAX: u64 = 3_653;
/// The runtime keeps keys no longer.
const WINDOW_DAYS_MAX: u64 = 366;
const NAME_CHARS_MAX: usize = 120;
const QUEUE_CHARS_MAX: usize = 63;

/// The runtime's default for a `max` that is not written, needed to judge the base delay.
const BACKOFF_MAX_DEFAULT: std::time::Duration = std::time::Duration::from_secs(300);
const JITTER_PERCENT_DEFAULT: u8 = 20;

/// The runtime's defaults, needed to judge a deadline.
pub(crate) const RETRIES_DEFAULT: u32 = 4;
pub(crate) const BACKOFF_DEFAULT: Backoff = Backoff::Exponential {
    base: std::time::Duration::from_secs(2),
    max: BACKOFF_MAX_DEFAULT,
    jitter_percent: JITTER_PERCENT_DEFAULT,
};

/// Reads every setting, in the order written; a wrong one is reported and left at the runtime's default.
pub(crate) fn policy(chosen: &Chosen<'_>, errors: &mut Errors) -> Policy {
    let mut policy = Policy::default();
    for value in chosen.values() {
        setting(&mut policy, value, errors);
    }
    policy
}

/// Reads one option into `policy`, if it is one of the plain ones.
fn setting(policy: &mut Policy, value: Value<'_>, errors: &mut Errors) {
    use values::{number, read_text, some_time};
    match value.spec.name {
        "alias" => policy.aliases.extend(alias(&policy.aliases, value, errors)),
        "queue" => policy.queue = checked_text(value, queue, errors).map(|name| name.value()),
        "retries" => policy.retries = number(value, 0..=RETRIES_MAX, errors),
        "priority" => policy.priority = number(value, -PRIORITY_MAX..=PRIORITY_MAX, errors),
        "schema" => policy.schema = number(value, 1..=SCHEMA_MAX, errors),
        "timeout" => policy.timeout = read_text(value, timeout, errors),
        "dedupe_until" => policy.dedupe_until = read_text(value, dedupe_until, errors),
        "on_duplicate" => policy.on_duplicate = read_text(value, on_duplicate, errors),
        "backoff" => {
            policy.backoff = read_text(value, |text| backoff(text).and_then(sensible), errors);
        }
        "deadline" => {
            policy.deadline = some_time(
                value,
                DEADLINE_DAYS_MAX,
                "leave the option out for no deadline",
                errors,
            );
        }
        "idempotency_for" => {
            policy.idempotency_for = some_time(
                value,
                WINDOW_DAYS_MAX,
                "leave `idempotency` out to remember nothing",
                errors,
            );
        }
        _ => {}
    }
}

fn alias(earlier: &[String], value: Value<'_>, errors: &mut Errors) -> Option<String> {
    let literal = checked_text(value, job_type, errors)?;
    let alias = literal.value();
    if earlier.contains(&alias) {
        errors.at(
            literal,
            format!("the alias \"{alias}\" is given twice; keep one of them"),
        );
        return None;
    }
    Some(alias)
}

/// The stored name: the given one, or the function's.
pub(crate) fn name(chosen: &Chosen<'_>, function: &Ident, errors: &mut Errors) -> String {
    let default = function.unraw().to_string();
    let name = match chosen.value("name") {
        None => {
            if let Err(fault) = job_type(&default) {
                errors.at(
                    function,
                    format!("the job's name: {fault}; give it one with `name = \"..\"`"),
                );
            }
            default
        }
        Some(value) => checked_text(value, job_type, errors).map_or(default, |name| name.value()),
    };
    let own = chosen
        .all("alias")
        .map(|value| value.written.blame())
        .find(|written| {
            syn::parse2::<LitStr>(written.clone()).is_ok_and(|literal| literal.value() == name)
        });
    if let Some(written) = own {
        errors.at(
            written,
            format!("the alias \"{name}\" is the job's own name; leave it out"),
        );
    }
    name
}

fn checked_text(
    value: Value<'_>,
    check: fn(&str) -> Result<(), String>,
    errors: &mut Errors,
) -> Option<LitStr> {
    let literal = values::text(value, errors)?;
    match check(&literal.value()) {
        Ok(()) => Some(literal),
        Err(fault) => {
            errors.at(&literal, format!("`{}`: {fault}", value.spec.name));
            None
        }
    }
}

fn job_type(text: &str) -> Result<(), String> {
    made_of(text, NAME_CHARS_MAX, "`A-Z a-z 0-9 . _ : - /`", |c| {
        c.is_ascii_alphanumeric() || "._:-/".contains(c)
    })
}

fn queue(text: &str) -> Result<(), String> {
    made_of(text, QUEUE_CHARS_MAX, "`a-z 0-9 . _ -`", |c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c)
    })
}

fn made_of(
    text: &str,
    chars_max: usize,
    allowed: &str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<(), String> {
    let rule = format!("write 1 to {chars_max} characters of {allowed}");
    match text.chars().find(|c| !is_allowed(*c)) {
        Some(stranger) => Err(format!("{rule}; found `{}`", stranger.escape_debug())),
        None if text.is_empty() => Err(format!("{rule}; found none")),
        None if text.len() > chars_max => Err(format!("{rule}; found {} characters", text.len())),
        None => Ok(()),
    }
}

fn timeout(text: &str) -> Result<Timeout, String> {
    match text {
        "none" => Ok(Timeout::Never),
        _ => values::time_within(
            text,
            DURATION_DAYS_MAX,
            "write `timeout = \"none\"` for no limit",
        )
        .map(Timeout::After),
    }
}

fn sensible(read: BackoffText) -> Result<Backoff, String> {
    let BackoffText {
        kind,
        base,
        max,
        jitter_percent,
    } = read;
    if base.is_zero() {
        return Err("the delay cannot be zero; the shortest is `1ms`".to_owned());
    }
    if let Some(percent @ 101..) = jitter_percent {
        return Err(format!(
            "`jitter` must be from 0% to 100%; found {percent}%"
        ));
    }
    match (kind, max) {
        (Kind::Fixed, _) => Ok(Backoff::Fixed {
            delay: base,
            jitter_percent: jitter_percent.unwrap_or(0),
        }),
        (Kind::Exponential, Some(max)) if max < base => Err(
            "`max` is shorter than the base delay; make it longer, or write `fixed(..)`".to_owned(),
        ),
        (Kind::Exponential, None) if BACKOFF_MAX_DEFAULT < base => Err(
            "the base delay is longer than the default `max` of 5m; write a longer `max`"
                .to_owned(),
        ),
        (Kind::Exponential, max) => Ok(Backoff::Exponential {
            base,
            max: max.unwrap_or(BACKOFF_MAX_DEFAULT),
            jitter_percent: jitter_percent.unwrap_or(JITTER_PERCENT_DEFAULT),
        }),
    }
}

fn dedupe_until(text: &str) -> Result<DedupeUntil, String> {
    match text {
        "finished" => Ok(DedupeUntil::Finished),
        "started" => Ok(DedupeUntil::Started),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c.is_whitespace()) => {
            values::time_within(
                text,
                WINDOW_DAYS_MAX,
                "leave `dedupe` out to allow duplicates",
            )
            .map(DedupeUntil::Window)
        }
        _ => {
            let hint = suggest::hint(text, ["finished", "started"]);
            Err(format!(
                "unknown value \"{text}\"; write \"finished\", \"started\" or a duration{hint}"
            ))
        }
    }
}

fn on_duplicate(text: &str) -> Result<OnDuplicate, String> {
    match text {
        "keep" => Ok(OnDuplicate::Keep),
        "replace" => Ok(OnDuplicate::Replace),
        "rerun" => Ok(OnDuplicate::Rerun),
        _ => {
            let hint = suggest::hint(text, ["keep", "replace", "rerun"]);
            Err(format!(
                "unknown value \"{text}\"; write \"keep\", \"replace\" or \"rerun\"{hint}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_only_characters_that_every_store_and_shell_takes() {
        #[track_caller]
        fn check(check: fn(&str) -> Result<(), String>, text: &str, expected: Result<(), &str>) {
            assert_eq!(check(text), expected.map_err(str::to_owned), "{text}");
        }
        check(job_type, "mail.welcome:v2/eu-west_1", Ok(()));
        check(job_type, &"x".repeat(120), Ok(()));
        check(queue, "mail-2.eu_west", Ok(()));
        check(
            queue,
            "Mail",
            Err("write 1 to 63 characters of `a-z 0-9 . _ -`; found `M`"),
        );
        check(
            queue,
            "",
            Err("write 1 to 63 characters of `a-z 0-9 . _ -`; found none"),
        );
        check(
            queue,
            &"q".repeat(64),
            Err("write 1 to 63 characters of `a-z 0-9 . _ -`; found 64 characters"),
        );
        check(
            job_type,
            "mail\n",
            Err("write 1 to 120 characters of `A-Z a-z 0-9 . _ : - /`; found `\\n`"),
        );
    }

    #[test]
    fn a_backoff_whose_numbers_contradict_each_other_is_refused() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let judged = backoff(text).and_then(sensible).map(|_| ());
            assert_eq!(judged, Err(expected.to_owned()), "{text}");
        }
        check(
            "fixed(0s)",
            "the delay cannot be zero; the shortest is `1ms`",
        );
        check(
            "fixed(1s, jitter = 101%)",
            "`jitter` must be from 0% to 100%; found 101%",
        );
        check(
            "exponential(10s, max = 5s)",
            "`max` is shorter than the base delay; make it longer, or write `fixed(..)`",
        );
        check(
            "exponential(10m)",
            "the base delay is longer than the default `max` of 5m; write a longer `max`",
        );
    }
}
