//! A place inside buffered JSON, described by what is said when something is put there.

use std::cell::Cell;

use super::super::guide::Kind;
use super::super::samples;
use super::{Try, after_expected, expected, missing, object, quoted};

/// Fields tried in one object, and objects inside one another.
const FIELDS_MAX: usize = 64;
const DEPTH_MAX: usize = 12;

/// How often one type is tried in all: a large one is described as far as that leads.
const TRIES_MAX: usize = 20_000;

/// What no type with rules takes, each refused in its own words: an object, a list, a text, a
/// number and a truth value.
const ODD: [&str; 5] = ["{\"\\u0001\":[]}", "[[]]", "\"\\u0001\"", "-0.5", "true"];

/// What stands for everything that is not looked into any more.
const MORE: &str = "..";

/// A place, with a way to put JSON there.
pub(super) struct Hole<'a> {
    put: Try<'a>,
    depth: usize,
    tries: &'a Cell<usize>,
}

/// What was learnt about a place.
pub(super) struct Found {
    /// JSON that is taken there, if any is known.
    pub(super) sample: Option<String>,
    /// A text that differs when something that can be seen differs.
    pub(super) about: String,
}

impl Found {
    fn unknown(about: &str) -> Self {
        Self {
            sample: None,
            about: about.to_owned(),
        }
    }
}

impl<'a> Hole<'a> {
    /// The place of a whole type, which may be tried so often as `tries` leaves.
    pub(super) fn whole(put: Try<'a>, tries: &'a Cell<usize>) -> Self {
        Self {
            put,
            depth: 0,
            tries,
        }
    }

    fn inside<'h>(&'h self, put: Try<'h>) -> Hole<'h> {
        Hole {
            put,
            depth: self.depth + 1,
            tries: self.tries,
        }
    }

    fn put(&self, json: &str) -> Result<(), String> {
        let tries = self.tries.get();
        if tries >= TRIES_MAX {
            return Err("tried too often".to_owned());
        }
        self.tries.set(tries + 1);
        (self.put)(json)
    }

    /// Whether JSON without fields is taken: then at most something beside it is missing.
    fn takes(&self, json: &str) -> bool {
        self.put(json)
            .err()
            .is_none_or(|said| missing(&said).is_some())
    }

    fn look(&self) -> Found {
        if self.depth > DEPTH_MAX {
            return Found::unknown(MORE);
        }
        let said = match self.put(ODD[0]) {
            Err(said) if missing(&said).is_none() => said,
            _ if self.takes(ODD[2]) && self.takes(ODD[4]) => {
                return Found {
                    sample: Some("null".into()),
                    about: "any".to_owned(),
                };
            }
            _ => return self.object(Vec::new()),
        };
        let variants = expected(&said);
        if !variants.is_empty() {
            return self.choice(&variants);
        }
        if said.starts_with("unknown field") {
            let Found { sample, about } = self.object(Vec::new());
            let about = format!("only {} {about}", names(&said).join(" "));
            return Found { sample, about };
        }
        if said.starts_with("invalid type: sequence") {
            let put = |json: &str| self.put(&format!("{{\"\\u0001\":{json}}}"));
            let value = self.inside(&put).look();
            return Found {
                sample: Some("{}".to_owned()).filter(|json| self.takes(json)),
                about: format!("map to {}", value.about),
            };
        }
        let expects = after_expected(&said).unwrap_or("something of its own");
        if expects.contains("sequence") && self.takes("[]") {
            let put = |json: &str| self.put(&format!("[{json}]"));
            let item = self.inside(&put).look();
            return Found {
                sample: Some("[]".into()),
                about: format!("list of {}", item.about),
            };
        }
        let any = samples::picky(&Kind::Any).iter();
        let mut all = any.chain(samples::picky(&Kind::Text));
        Found {
            sample: all.find(|json| self.takes(json)).map(|&json| json.into()),
            about: expects.to_owned(),
        }
    }

    /// Adds fields until none of its own is missing.
    pub(super) fn object(&self, mut given: Vec<(String, String)>) -> Found {
        let mut fields = Vec::new();
        let told = |fields: &[String]| format!("{{{}}}", fields.join(", "));
        for _ in 0..FIELDS_MAX {
            let whole = object(&given);
            let next = match self.put(&whole) {
                Ok(()) => None,
                Err(said) => Some(missing(&said)),
            };
            let name = match next {
                Some(Some(name)) if self.owns(&given, &name) => name,
                None | Some(Some(_)) => {
                    return Found {
                        sample: Some(whole),
                        about: told(&fields),
                    };
                }
                Some(None) => break,
            };
            if given.iter().any(|(known, _)| *known == name) {
                break;
            }
            let put = |json: &str| self.put(&with(&given, &name, json));
            let found = self.inside(&put).look();
            fields.push(format!("{name}: {}", found.about));
            let Some(sample) = found.sample else {
                return Found::unknown(&told(&fields));
            };
            given.push((name, sample));
        }
        fields.push(MORE.to_owned());
        Found::unknown(&told(&fields))
    }

    /// Whether a field that is missing belongs into this object, and not beside it: then some value
    /// of it is answered in another way.
    fn owns(&self, given: &[(String, String)], name: &str) -> bool {
        let is_still_missing = |odd: &str| {
            let said = self.put(&with(given, name, odd)).err();
            said.and_then(|said| missing(&said)).as_deref() == Some(name)
        };
        self.depth == 0 || !ODD.iter().all(|odd| is_still_missing(odd))
    }

    fn choice(&self, variants: &[String]) -> Found {
        let mut samples = Vec::new();
        let told = variants.iter().map(|variant| {
            let name = quoted(variant);
            if self.takes(&name) {
                samples.push(name);
                return variant.clone();
            }
            let put = |json: &str| self.put(&format!("{{{name}:{json}}}"));
            let Found { sample, about } = self.inside(&put).look();
            samples.extend(sample.map(|json| format!("{{{name}:{json}}}")));
            format!("{variant} of {about}")
        });
        let told: Vec<String> = told.collect();
        Found {
            about: format!("one of {}", told.join(" | ")),
            sample: samples.into_iter().next(),
        }
    }
}

fn with(given: &[(String, String)], name: &str, json: &str) -> String {
    let mut more = given.to_vec();
    more.push((name.to_owned(), json.to_owned()));
    object(&more)
}

/// The fields of "unknown field `x`, expected `a` or `b`", sorted.
fn names(said: &str) -> Vec<String> {
    let list = said.split_once(", expected").map_or("", |(_, list)| list);
    let mut names: Vec<_> = list
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}
