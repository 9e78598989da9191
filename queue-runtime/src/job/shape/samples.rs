//! JSON that is tried on types.
//!
//! The first list of a kind holds values that a type without rules of its own takes, odd ones among
//! them: who refuses one is opaque. The other holds what types with rules tend to accept, so that
//! what stands beside such a value can still be looked at.
//!
//! Checked-in files hold what came of these lists: whoever changes them raises `lockfile::FORMAT`.

use super::guide::Kind;

/// The values that every plain type of this kind takes.
pub(super) fn plain(kind: &Kind) -> Vec<String> {
    match kind {
        Kind::Bool => own(&["false", "true"]),
        Kind::Int(int) => {
            let bits = u32::from(int.bits);
            let top = u128::MAX >> (128 - bits + u32::from(int.signed));
            let mut values = vec!["0".to_owned(), "1".to_owned(), top.to_string()];
            if int.signed {
                values.push(format!("-{}", top + 1));
            }
            values
        }
        Kind::Float(_) => own(&["0.5", "1", "-1e9"]),
        Kind::Char => own(&["\"a\"", "\"\\u0001\""]),
        Kind::Text => {
            let mut values = own(&["\"\"", "\"\\u0001 an odd, \\\"quoted\\\" text\""]);
            values.push(format!("\"{}\"", "é~".repeat(2_000)));
            values
        }
        Kind::Bytes => own(&["[]", "[0,255]"]),
        Kind::Unit => own(&["null"]),
        _ => own(&ANY),
    }
}

/// One JSON of each kind.
const ANY: [&str; 8] = [
    "null",
    "true",
    "1",
    "-1.5",
    "\"\\u0001 an odd text\"",
    "[]",
    "[null]",
    "{\"\\u0001\":null}",
];

/// What a type with rules of its own takes of all samples of its kind, in words: two types that differ
/// in this differ in their rules, whatever they are called.
pub(super) fn habits(kind: &Kind, takes: impl Fn(&str) -> bool) -> String {
    let plain = plain(kind);
    let named = plain.iter().enumerate().map(|(at, json)| {
        let name = match kind {
            Kind::Text => ["empty", "odd", "long"].get(at).copied(),
            _ => None,
        };
        (name.unwrap_or(json), json.as_str())
    });
    let picky = picky(kind)
        .iter()
        .map(|&json| (json.trim_matches('"'), json));
    let (taken, refused): (Vec<_>, Vec<_>) = named.chain(picky).partition(|(_, json)| takes(json));
    let told = |samples: &[(&str, &str)]| {
        let names: Vec<&str> = samples.iter().map(|(name, _)| *name).collect();
        names.join(" ")
    };
    match (taken.len(), refused.len()) {
        (0, _) => "takes none that was tried".to_owned(),
        (some, more) if some > more => format!("refuses {}", told(&refused)),
        _ => format!("takes {}", told(&taken)),
    }
}

/// What is tried on a type that decides by the kind of JSON and does not say why it refuses any.
pub(super) const UNTAGGED: [&str; 22] = [
    "null",
    "false",
    "0",
    "1",
    "-1",
    "0.5",
    "256",
    "65536",
    "4294967296",
    "18446744073709551615",
    "\"\"",
    "\"a\"",
    "\"1\"",
    "\"two words\"",
    "[]",
    "[0]",
    "[true]",
    "[256]",
    "[\"a\"]",
    "[[]]",
    "[{}]",
    "{}",
];

/// What types with rules of their own accept.
pub(super) fn picky(kind: &Kind) -> &'static [&'static str] {
    match kind {
        Kind::Text => &TEXTS,
        Kind::Int(_) | Kind::Float(_) => &["1", "2", "10", "100", "1000"],
        Kind::Any => &PICKY_ANY,
        _ => &[],
    }
}

const TEXTS: [&str; 26] = [
    "\"a\"",
    "\"A\"",
    "\"0\"",
    "\"1\"",
    "\"1.0\"",
    "\"1.0.0\"",
    "\"true\"",
    "\"2024-01-01\"",
    "\"2024-01-01T00:00:00Z\"",
    "\"2024-01-01T00:00:00\"",
    "\"2024-01-01 00:00:00\"",
    "\"00:00:00\"",
    "\"00000000-0000-0000-0000-000000000000\"",
    "\"127.0.0.1\"",
    "\"::1\"",
    "\"127.0.0.1:80\"",
    "\"127.0.0.1/32\"",
    "\"a@b.example\"",
    "\"http://localhost/\"",
    "\"en\"",
    "\"EUR\"",
    "\"UTC\"",
    "\"#000000\"",
    "\"PT1S\"",
    "\"1s\"",
    "\"/\"",
];

const PICKY_ANY: [&str; 10] = [
    "null", "false", "0", "1", "0.5", "\"\"", "\"a\"", "\"1\"", "[]", "{}",
];

fn own(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}
