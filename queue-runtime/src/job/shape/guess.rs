//! Looks at a type that decides by the JSON it is given (tagged enums, flattened structs), by what
//! it says against samples.
//!
//! serde buffers the JSON for such a type, so nothing is asked for. Its errors still name a tag,
//! its variants and the fields that must be there. What may be left out stays unseen.

use super::guide::Kind;
use super::samples;

/// What was found.
pub(super) struct Guess {
    pub(super) sample: Option<String>,
    /// A text that differs when something that can be seen differs.
    pub(super) about: Option<String>,
}

/// Fields tried in one variant.
const FIELDS_MAX: usize = 64;

type Try<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Tries samples on one type.
pub(super) fn look(try_json: Try<'_>) -> Guess {
    let picky = samples::picky(&Kind::Any).iter();
    let sample = picky.clone().find(|json| try_json(json).is_ok());
    let kinds: Vec<&str> = picky
        .filter(|json| try_json(json).is_ok())
        .copied()
        .collect();
    if let Some(sample) = sample {
        return Guess {
            sample: Some((*sample).to_owned()),
            about: Some(format!("takes {}", kinds.join(" "))),
        };
    }
    let mut none = Guess {
        sample: None,
        about: None,
    };
    let Some(first) = try_json("{}").err().and_then(|said| missing(&said)) else {
        return none;
    };
    let unknown = try_json(&object(&[(first.clone(), "\"\\u0001\"".into())]));
    let variants = unknown
        .err()
        .map(|said| expected(&said))
        .unwrap_or_default();
    if variants.is_empty() {
        let (sample, fields) = fill(try_json, Vec::new());
        return Guess {
            sample,
            about: Some(format!("{{{fields}}}")),
        };
    }
    let mut said = Vec::new();
    for variant in &variants {
        let (sample, fields) = fill(try_json, vec![(first.clone(), quoted(variant))]);
        none.sample = none.sample.or(sample);
        said.push(format!("{variant} {{{fields}}}"));
    }
    none.about = Some(format!("by `{first}`: {}", said.join(", ")));
    none
}

/// Adds fields until nothing is missing; gives a sample, and the fields with what they expect.
fn fill(try_json: Try<'_>, mut given: Vec<(String, String)>) -> (Option<String>, String) {
    let mut fields = Vec::new();
    let told = |fields: &[String]| fields.join(", ");
    for _ in 0..FIELDS_MAX {
        let Err(said) = try_json(&object(&given)) else {
            return (Some(object(&given)), told(&fields));
        };
        let Some(name) = missing(&said) else {
            fields.push("..".to_owned());
            return (None, told(&fields));
        };
        let with = |json: &str| {
            let mut more = given.clone();
            more.push((name.clone(), json.to_owned()));
            more
        };
        let odd = try_json(&object(&with("{\"\\u0001\":[]}"))).err();
        let expects = odd.as_deref().and_then(after_expected).unwrap_or("any");
        fields.push(format!("{name}: {expects}"));
        let texts = samples::picky(&Kind::Text).iter();
        let values = samples::picky(&Kind::Any).iter().chain(texts);
        let fits = |json: &&&str| match try_json(&object(&with(json))) {
            Ok(()) => true,
            Err(said) => missing(&said).is_some_and(|next| next != name),
        };
        let Some(value) = values.clone().find(fits) else {
            return (None, told(&fields));
        };
        given = with(value);
    }
    (None, told(&fields))
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
