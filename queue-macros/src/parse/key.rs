//! Reads keys, the text that says which payload fields make two jobs alike.
//!
//! A key is a list of field paths (`user_id, order.id`) or, as soon as it holds a brace, a template
//! (`user-{user_id}`). Whether the fields exist is not known here. A template with broken braces is
//! passed on as it is: the compiler describes it better, at the very character.

use std::ops::Range;

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::Parser;

/// A key as written, every name with its place (in bytes) in the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyText {
    List(Vec<PathText>),
    Template(Vec<Hole>),
}

/// One field path: `order.id` has two segments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathText {
    pub(crate) segments: Vec<String>,
    /// Where the first segment stands: the one that must be a payload field.
    pub(crate) place: Range<usize>,
}

/// One `{name}` of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) name: String,
    pub(crate) place: Range<usize>,
}

/// What is wrong with a key, and where in the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyFault {
    pub(crate) message: String,
    pub(crate) place: Range<usize>,
}

/// Reads `text` as a key.
pub(crate) fn key(text: &str) -> Result<KeyText, KeyFault> {
    if text.contains(['{', '}']) {
        template(text).map(KeyText::Template)
    } else {
        list(text).map(KeyText::List)
    }
}

fn list(text: &str) -> Result<Vec<PathText>, KeyFault> {
    let mut paths = Vec::new();
    let mut start = 0;
    for part in text.split(',') {
        let end = start + part.len();
        if part.trim().is_empty() {
            let message = "names no field; write a payload field, as in `user_id`".to_owned();
            return Err(KeyFault {
                message,
                place: start..end,
            });
        }
        let at = start + (part.len() - part.trim_start().len());
        paths.push(path(part.trim(), at)?);
        start = end + 1;
    }
    Ok(paths)
}

fn path(text: &str, start: usize) -> Result<PathText, KeyFault> {
    let segments: Vec<&str> = text.split('.').collect();
    let well_formed = is_name(segments[0])
        && segments[1..]
            .iter()
            .all(|segment| is_name(segment) || is_index(segment));
    if !well_formed {
        let message = format!(
            "`{text}` is not a field; write `user_id`, `order.id`, or a template such as `user-{{user_id}}`"
        );
        return Err(KeyFault {
            message,
            place: start..start + text.len(),
        });
    }
    let place = start..start + segments[0].len();
    Ok(PathText {
        segments: segments.into_iter().map(str::to_owned).collect(),
        place,
    })
}

fn template(text: &str) -> Result<Vec<Hole>, KeyFault> {
    let mut holes = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let start = text.len() - rest.len() + open;
        if rest[open + 1..].starts_with('{') {
            rest = &rest[open + 2..];
            continue;
        }
        let Some(length) = rest[open..].find('}') else {
            return Ok(holes);
        };
        let place = start..start + length + 1;
        holes.push(hole(&text[place.clone()], place.clone())?);
        rest = &text[place.end..];
    }
    if holes.is_empty() && !has_lone_brace(text) {
        let message =
            "names no field, so every job would share it; write one, as in `user-{user_id}`";
        return Err(KeyFault {
            message: message.to_owned(),
            place: 0..text.len(),
        });
    }
    Ok(holes)
}

/// Reads one `{name:format}`; `text` holds its braces.
fn hole(text: &str, place: Range<usize>) -> Result<Hole, KeyFault> {
    let inner = &text[1..text.len() - 1];
    let (name, format) = inner.split_once(':').unwrap_or((inner, ""));
    let name = name.trim();
    let fault = |message| {
        Err(KeyFault {
            message,
            place: place.clone(),
        })
    };
    if format.trim().ends_with('?') {
        return fault(format!(
            "`{text}` is Debug output, which is not a stable key; write `{{{name}}}`"
        ));
    }
    if name.is_empty() || is_index(name) {
        return fault(format!(
            "`{text}` names no field; write its name, as in `{{user_id}}`"
        ));
    }
    if name.contains('.') {
        return fault(format!(
            "a template takes plain fields, not `{name}`; write the list form, as in `\"{name}\"`"
        ));
    }
    Ok(Hole {
        name: name.to_owned(),
        place,
    })
}

fn has_lone_brace(text: &str) -> bool {
    let plain = text.replace("{{", "").replace("}}", "");
    plain.contains(['{', '}'])
}

/// Whether `text` can name a field; keywords can, as `r#type` does.
fn is_name(text: &str) -> bool {
    let reserved = ["_", "self", "Self", "super", "crate"];
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && Ident::parse_any.parse_str(text).is_ok()
        && !reserved.contains(&text)
}

fn is_index(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_each_path_and_its_place() {
        #[track_caller]
        fn check(text: &str, expected: &[(&[&str], Range<usize>)]) {
            let paths = expected.iter().map(|(segments, place)| PathText {
                segments: segments.iter().map(|s| (*s).to_owned()).collect(),
                place: place.clone(),
            });
            assert_eq!(key(text), Ok(KeyText::List(paths.collect())), "{text}");
        }
        check("user_id", &[(&["user_id"], 0..7)]);
        check(
            "user_id, order.id",
            &[(&["user_id"], 0..7), (&["order", "id"], 9..14)],
        );
        check(" a ,b", &[(&["a"], 1..2), (&["b"], 4..5)]);
        check("type", &[(&["type"], 0..4)]);
        check("straße.größe", &[(&["straße", "größe"], 0..7)]);
        check("pair.0", &[(&["pair", "0"], 0..4)]);
    }

    #[test]
    fn a_template_keeps_each_field_and_its_place() {
        #[track_caller]
        fn check(text: &str, expected: &[(&str, Range<usize>)]) {
            let holes = expected.iter().map(|(name, place)| Hole {
                name: (*name).to_owned(),
                place: place.clone(),
            });
            assert_eq!(key(text), Ok(KeyText::Template(holes.collect())), "{text}");
        }
        check("user-{user_id}", &[("user_id", 5..14)]);
        check("{a}/{b:>5}", &[("a", 0..3), ("b", 4..10)]);
        check("{{{a}}}", &[("a", 2..5)]);
        // The compiler reports these, at the brace.
        check("user-{user_id", &[]);
        check("user-}", &[]);
    }

    #[test]
    fn anything_else_says_what_is_wrong_and_where() {
        #[track_caller]
        fn check(text: &str, expected: &str, place: Range<usize>) {
            let fault = key(text).expect_err("the case is not a key");
            assert_eq!(
                (fault.message.as_str(), fault.place),
                (expected, place),
                "{text}"
            );
        }
        check(
            "",
            "names no field; write a payload field, as in `user_id`",
            0..0,
        );
        check(
            "a,,b",
            "names no field; write a payload field, as in `user_id`",
            2..2,
        );
        check(
            "user id",
            "`user id` is not a field; write `user_id`, `order.id`, or a template such as `user-{user_id}`",
            0..7,
        );
        check(
            "order.①",
            "`order.①` is not a field; write `user_id`, `order.id`, or a template such as `user-{user_id}`",
            0..9,
        );
        check(
            "a, b-c",
            "`b-c` is not a field; write `user_id`, `order.id`, or a template such as `user-{user_id}`",
            3..6,
        );
        check(
            "all-{{users}}",
            "names no field, so every job would share it; write one, as in `user-{user_id}`",
            0..13,
        );
        check(
            "u-{x:?}",
            "`{x:?}` is Debug output, which is not a stable key; write `{x}`",
            2..7,
        );
        check(
            "u-{}",
            "`{}` names no field; write its name, as in `{user_id}`",
            2..4,
        );
        check(
            "u-{0}",
            "`{0}` names no field; write its name, as in `{user_id}`",
            2..5,
        );
        check(
            "u-{order.id}",
            "a template takes plain fields, not `order.id`; write the list form, as in `\"order.id\"`",
            2..12,
        );
    }
}
