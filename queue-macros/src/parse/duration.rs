//! Reads durations such as `90s` and `1h30m`.
//!
//! Grammar: one or more `<digits><unit>` with the units `ms s m h d`, nothing between them. The sum is
//! exact, in milliseconds; overflow is found, never wrapped. Whether zero makes sense is not decided here.

use std::time::Duration;

/// A hundred years: longer is a slip, and every store can hold it as milliseconds.
pub(crate) const DAYS_MAX: u64 = 36_500;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Reads `text` as a duration, or says what to write instead.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("a duration is empty; write a number and a unit, as in `60s`".to_owned());
    }
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = leading(rest, |c| c.is_ascii_digit());
        let after = &rest[digits.len()..];
        let unit = leading(after, |c| c.is_alphabetic() || c == 'µ');
        if let Some(message) = misplaced(text, rest, digits, after, unit) {
            return Err(message);
        }
        let millis = unit_millis(unit).ok_or_else(|| unknown_unit(digits, unit))?;
        total = digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(millis))
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= DAYS_MAX * DAY)
            .ok_or_else(|| format!("`{text}` is too long; the longest is `{DAYS_MAX}d`"))?;
        rest = &after[unit.len()..];
    }
    Ok(Duration::from_millis(total))
}

/// The message for anything that is not digits followed by letters.
fn misplaced(text: &str, rest: &str, digits: &str, after: &str, unit: &str) -> Option<String> {
    if rest.starts_with(char::is_whitespace) {
        let before = &text[..text.len() - rest.len()];
        return Some(unexpected_space(before));
    }
    if digits.is_empty() {
        return Some(match rest.chars().next() {
            Some('-') => format!("`{text}` is negative; a duration is not"),
            _ => format!(
                "`{rest}` does not start with a number; write a number and a unit, as in `60s`"
            ),
        });
    }
    if !unit.is_empty() {
        return None;
    }
    Some(match after.chars().next() {
        None => format!("`{digits}` has no unit; write `{digits}s` for seconds"),
        Some('.' | ',') => {
            format!("`{text}` has a fraction; add a smaller unit instead, as in `1h30m`")
        }
        Some('_') => format!("`{text}` has an underscore; write plain digits"),
        Some(space) if space.is_whitespace() => unexpected_space(digits),
        Some(other) => {
            format!("unexpected `{other}` after `{digits}`; write a unit, as in `{digits}s`")
        }
    })
}

fn unexpected_space(before: &str) -> String {
    match before {
        "" => {
            "unexpected space at the start; write number and unit together, as in `60s`".to_owned()
        }
        _ => format!(
            "unexpected space after `{before}`; write number and unit together, as in `60s`"
        ),
    }
}

fn unit_millis(unit: &str) -> Option<u64> {
    match unit {
        "ms" => Some(1),
        "s" => Some(SECOND),
        "m" => Some(MINUTE),
        "h" => Some(HOUR),
        "d" => Some(DAY),
        _ => None,
    }
}

fn unknown_unit(digits: &str, unit: &str) -> String {
    let meant = match unit.to_lowercase().as_str() {
        "milli" | "millis" | "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        _ => {
            return format!(
                "unknown unit `{unit}` after `{digits}`; the units are `ms`, `s`, `m`, `h` and `d`"
            );
        }
    };
    format!("unknown unit `{unit}`; write `{digits}{meant}`")
}

/// The longest start of `text` in which `belongs` holds for every character.
fn leading(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_add_up() {
        #[track_caller]
        fn check(text: &str, millis: u64) {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        check("0s", 0);
        check("1ms", 1);
        check("60s", 60_000);
        check("5m", 300_000);
        check("1h30m", 5_400_000);
        check("1d", 86_400_000);
        check("1d2h3m4s5ms", 93_784_005);
        check("007s", 7_000);
        check("36500d", 36_500 * 86_400_000);
    }

    #[test]
    fn anything_else_says_what_to_write_instead() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(duration(text), Err(expected.to_owned()), "{text}");
        }
        check(
            "",
            "a duration is empty; write a number and a unit, as in `60s`",
        );
        check("60", "`60` has no unit; write `60s` for seconds");
        check("1h30", "`30` has no unit; write `30s` for seconds");
        check(
            "60 secs",
            "unexpected space after `60`; write number and unit together, as in `60s`",
        );
        check(
            "1h 30m",
            "unexpected space after `1h`; write number and unit together, as in `60s`",
        );
        check(
            " 60s",
            "unexpected space at the start; write number and unit together, as in `60s`",
        );
        check(
            "60s ",
            "unexpected space after `60s`; write number and unit together, as in `60s`",
        );
        check("60secs", "unknown unit `secs`; write `60s`");
        check("60S", "unknown unit `S`; write `60s`");
        check("5min", "unknown unit `min`; write `5m`");
        check(
            "5M",
            "unknown unit `M` after `5`; the units are `ms`, `s`, `m`, `h` and `d`",
        );
        check(
            "2w",
            "unknown unit `w` after `2`; the units are `ms`, `s`, `m`, `h` and `d`",
        );
        check(
            "1.5h",
            "`1.5h` has a fraction; add a smaller unit instead, as in `1h30m`",
        );
        check("-5s", "`-5s` is negative; a duration is not");
        check(
            "s",
            "`s` does not start with a number; write a number and a unit, as in `60s`",
        );
        check("1_000s", "`1_000s` has an underscore; write plain digits");
        check("5%", "unexpected `%` after `5`; write a unit, as in `5s`");
        check("36501d", "`36501d` is too long; the longest is `36500d`");
        check(
            "99999999999999999999s",
            "`99999999999999999999s` is too long; the longest is `36500d`",
        );
        check(
            "36500d1ms",
            "`36500d1ms` is too long; the longest is `36500d`",
        );
    }
}
