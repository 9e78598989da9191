//! Reads backoff formulas such as `exponential(2s, max = 5m, jitter = 20%)`.
//!
//! Finds out what was written, each part at most once. Defaults, and whether the numbers make sense
//! together, are decided by `validate`.

use std::time::Duration;

use super::duration::duration;
use crate::suggest;

/// The two shapes of a backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fixed,
    Exponential,
}

/// A backoff as written: parts that were left out are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackoffText {
    pub(crate) kind: Kind,
    pub(crate) base: Duration,
    pub(crate) max: Option<Duration>,
    pub(crate) jitter_percent: Option<u8>,
}

const KINDS: [&str; 2] = ["fixed", "exponential"];

/// Reads `text` as a backoff, or says what to write instead.
pub(crate) fn backoff(text: &str) -> Result<BackoffText, String> {
    let text = text.trim();
    let (word, rest) = match text.split_once('(') {
        Some((word, rest)) => (word.trim(), Some(rest)),
        None => (text, None),
    };
    let kind = match word {
        "fixed" => Kind::Fixed,
        "exponential" => Kind::Exponential,
        _ => return Err(unknown_kind(word)),
    };
    let inner = rest
        .ok_or_else(|| {
            format!(
                "`{word}` needs its delay in parentheses, as in `{}`",
                example(kind)
            )
        })?
        .strip_suffix(')')
        .ok_or_else(|| format!("`{text}` is not closed; write `)` at its end"))?;
    parts(kind, inner)
}

fn parts(kind: Kind, inner: &str) -> Result<BackoffText, String> {
    let mut parts = inner.split(',').map(str::trim);
    let base = match parts.next() {
        None | Some("") => return Err(format!("the delay is missing; write `{}`", example(kind))),
        Some(part) if part.contains('=') => {
            return Err(format!(
                "the delay comes first, without a name, as in `{}`",
                example(kind)
            ));
        }
        Some(part) => duration(part)?,
    };
    let mut read = BackoffText {
        kind,
        base,
        max: None,
        jitter_percent: None,
    };
    for part in parts {
        let (name, value) = part
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .ok_or_else(|| unnamed(kind, part))?;
        match name {
            "max" if kind == Kind::Fixed => {
                return Err("`fixed` has no `max`: its delay never grows".to_owned());
            }
            "max" => once(&mut read.max, name, duration(value)?)?,
            "jitter" => once(&mut read.jitter_percent, name, percent(value)?)?,
            _ => return Err(unknown_part(kind, name)),
        }
    }
    Ok(read)
}

fn once<T>(slot: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("`{name}` is given twice")),
    }
}

fn percent(text: &str) -> Result<u8, String> {
    let digits = text.strip_suffix('%').ok_or_else(|| without_sign(text))?;
    digits
        .parse()
        .map_err(|_| format!("`jitter` takes whole percent, as in `jitter = 20%`; found `{text}`"))
}

/// What was meant by a jitter without `%`: `20`, or the fraction `0.2`.
fn without_sign(text: &str) -> String {
    let meant = match text.parse::<f64>() {
        Ok(fraction) if text.contains('.') && (0.0..=1.0).contains(&fraction) => {
            format!("{:.0}", fraction * 100.0)
        }
        _ if text.parse::<u8>().is_ok_and(|percent| percent <= 100) => text.to_owned(),
        _ => "20".to_owned(),
    };
    format!("`jitter` is a percentage; write `jitter = {meant}%`")
}

fn part_names(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Fixed => &["jitter"],
        Kind::Exponential => &["max", "jitter"],
    }
}

fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::Fixed => "fixed(5s)",
        Kind::Exponential => "exponential(2s, max = 5m, jitter = 20%)",
    }
}

fn unknown_kind(word: &str) -> String {
    let hint = suggest::hint(word, KINDS);
    let hint = if hint.is_empty() {
        "; the kinds are `fixed` and `exponential`"
    } else {
        &hint
    };
    format!("unknown backoff `{word}`{hint}")
}

fn unknown_part(kind: Kind, name: &str) -> String {
    let names = part_names(kind).iter().copied();
    let hint = suggest::hint(name, names.clone());
    if hint.is_empty() {
        return format!(
            "unknown part `{name}`; known here: {}",
            suggest::list(names)
        );
    }
    format!("unknown part `{name}`{hint}")
}

fn unnamed(kind: Kind, part: &str) -> String {
    if part.is_empty() {
        return "a part is empty; remove the comma".to_owned();
    }
    format!(
        "only the delay has no name; write `{}`",
        match kind {
            Kind::Fixed => format!("jitter = {part}"),
            Kind::Exponential => format!("max = {part}"),
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn both_kinds_are_read_with_and_without_their_parts() {
        #[track_caller]
        fn check(text: &str, kind: Kind, base: u64, max: Option<u64>, jitter_percent: Option<u8>) {
            let expected = BackoffText {
                kind,
                base: secs(base),
                max: max.map(secs),
                jitter_percent,
            };
            assert_eq!(backoff(text), Ok(expected), "{text}");
        }
        check("fixed(5s)", Kind::Fixed, 5, None, None);
        check("fixed(5s, jitter = 10%)", Kind::Fixed, 5, None, Some(10));
        check("exponential(2s)", Kind::Exponential, 2, None, None);
        check(
            "exponential(2s, max = 5m, jitter = 20%)",
            Kind::Exponential,
            2,
            Some(300),
            Some(20),
        );
        check(
            "exponential(2s,jitter=0%,max=1h)",
            Kind::Exponential,
            2,
            Some(3600),
            Some(0),
        );
        check(" exponential ( 2s ) ", Kind::Exponential, 2, None, None);
    }

    #[test]
    fn anything_else_says_what_to_write_instead() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(backoff(text), Err(expected.to_owned()), "{text}");
        }
        check(
            "exponental(2s)",
            "unknown backoff `exponental`; did you mean `exponential`?",
        );
        check(
            "linear(2s)",
            "unknown backoff `linear`; the kinds are `fixed` and `exponential`",
        );
        check(
            "5s",
            "unknown backoff `5s`; the kinds are `fixed` and `exponential`",
        );
        check(
            "fixed",
            "`fixed` needs its delay in parentheses, as in `fixed(5s)`",
        );
        check("fixed(5s", "`fixed(5s` is not closed; write `)` at its end");
        check("fixed()", "the delay is missing; write `fixed(5s)`");
        check("fixed(5)", "`5` has no unit; write `5s` for seconds");
        check(
            "fixed(5s, max = 1m)",
            "`fixed` has no `max`: its delay never grows",
        );
        check(
            "exponential(2s, 5m)",
            "only the delay has no name; write `max = 5m`",
        );
        check(
            "exponential(2s, mx = 5m)",
            "unknown part `mx`; did you mean `max`?",
        );
        check(
            "exponential(2s, factor = 3)",
            "unknown part `factor`; known here: `max`, `jitter`",
        );
        check(
            "exponential(2s, max = 5m, max = 6m)",
            "`max` is given twice",
        );
        check(
            "exponential(2s, jitter = 20)",
            "`jitter` is a percentage; write `jitter = 20%`",
        );
        check(
            "fixed(2s, jitter = 0.25)",
            "`jitter` is a percentage; write `jitter = 25%`",
        );
        check(
            "fixed(2s, jitter = 1.0)",
            "`jitter` is a percentage; write `jitter = 100%`",
        );
        check(
            "fixed(2s, jitter = some)",
            "`jitter` is a percentage; write `jitter = 20%`",
        );
        check(
            "exponential(2s, jitter = 0.5%)",
            "`jitter` takes whole percent, as in `jitter = 20%`; found `0.5%`",
        );
        check("exponential(2s,)", "a part is empty; remove the comma");
        check(
            "exponential(max = 5m)",
            "the delay comes first, without a name, as in `exponential(2s, max = 5m, jitter = 20%)`",
        );
    }
}
