//! Looks at a type that decides by the JSON it is given (tagged enums, flattened structs), by what
//! it says against samples.
//!
//! serde buffers the JSON for such a type, so nothing is asked for. Its errors still name a tag,
//! its variants, the fields that must be there and the kinds of values. What may be left out stays
//! unseen.

mod hole;

use std::cell::Cell;

use super::samples;
use hole::Hole;

/// What was found.
pub(super) struct Guess {
    pub(super) sample: Option<String>,
    /// A text that differs when something that can be seen differs.
    pub(super) about: Option<String>,
}

type Try<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Tries samples on one type.
pub(super) fn look(try_json: Try<'_>) -> Guess {
    let kinds: Vec<&str> = samples::UNTAGGED
        .iter()
        .filter(|json| try_json(json).is_ok())
        .copied()
        .collect();
    if let Some(sample) = kinds.first() {
        return Guess {
            sample: Some((*sample).to_owned()),
            about: Some(format!("takes {}", kinds.join(" "))),
        };
    }
    let mut guess = Guess {
        sample: None,
        about: None,
    };
    let Some(first) = try_json("{}").err().and_then(|said| missing(&said)) else {
        return guess;
    };
    let tries = Cell::new(0);
    let whole = Hole::whole(try_json, &tries);
    let unknown = try_json(&object(&[(first.clone(), "\"\\u0001\"".into())]));
    let variants = unknown
        .err()
        .map(|said| expected(&said))
        .unwrap_or_default();
    if variants.is_empty() {
        let found = whole.object(Vec::new());
        return Guess {
            sample: found.sample,
            about: Some(found.about),
        };
    }
    let mut said = Vec::new();
    for variant in &variants {
        let found = whole.object(vec![(first.clone(), quoted(variant))]);
        guess.sample = guess.sample.or(found.sample);
        said.push(format!("{variant} {}", found.about));
    }
    guess.about = Some(format!("by `{first}`: {}", said.join(", ")));
    guess
}

fn object(fields: &[(String, String)]) -> String {
    let fields = fields
        .iter()
        .map(|(name, json)| format!("{}:{json}", quoted(name)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn missing(said: &str) -> Option<String> {
    named(said, "missing field").map(str::to_owned)
}

/// The variants of "unknown variant `x`, expected one of `A`, `B`".
fn expected(said: &str) -> Vec<String> {
    let Some((_, list)) = said
        .strip_prefix("unknown variant")
        .and_then(|rest| rest.split_once(", expected "))
    else {
        return Vec::new();
    };
    let names = list.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// `u32` of "invalid type: map, expected u32 at line 1 column 2".
fn after_expected(said: &str) -> Option<&str> {
    let (_, expects) = said.split_once(", expected ")?;
    Some(expects.split(" at line ").next().unwrap_or(expects))
}

/// The name in "missing field `x`".
pub(super) fn named<'s>(said: &'s str, what: &str) -> Option<&'s str> {
    let rest = said.strip_prefix(what)?.strip_prefix(" `")?;
    rest.split('`').next()
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
