//! Says where a stored value could not be read, and why, without telling what is stored: text never
//! shows, names of variants and fields are cut, numbers are shown.

use super::ids::shorten_to;
use super::place::{path_of_fault, token_end};
use crate::error::PayloadError;

/// The longest name of a variant, field or key that is shown, in characters.
pub(super) const NAME_CHARS_MAX: usize = 40;

/// The longest reason, in characters: a type's own error may hold anything.
const RULE_CHARS_MAX: usize = 500;

/// Describes why the stored value `json` of the field `name` could not be read; `read` tries again
/// with another text.
pub(super) fn of_field(
    name: &str,
    json: &str,
    error: &serde_json::Error,
    read: &dyn Fn(&str) -> Option<serde_json::Error>,
) -> PayloadError {
    let reason = reason(error);
    let fails_alike = |text: &str| read(text).is_some_and(|error| self::reason(&error) == reason);
    PayloadError {
        path: format!("$.{name}{}", path_of_fault(json, fails_alike)),
        rule: shown(&reason),
    }
}

/// Describes why a payload is no object.
pub(super) fn of_payload(error: &serde_json::Error) -> PayloadError {
    PayloadError {
        path: "$".to_owned(),
        rule: match error.is_data() {
            true => shown(&reason(error)),
            false => error.to_string(),
        },
    }
}

/// Describes a field that is not there.
pub(super) fn missing(name: &str) -> PayloadError {
    PayloadError {
        path: "$".to_owned(),
        rule: format!("missing field `{name}`"),
    }
}

/// serde's reason without its line and column, which count inside one field only.
fn reason(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let (Some(end), 1..) = (text.rfind(" at line "), error.line()) {
        text.truncate(end);
    }
    text
}

/// A reason without what the payload holds.
fn shown(reason: &str) -> String {
    shorten_to(RULE_CHARS_MAX, &with_short_name(&without_strings(reason)))
}

/// Leaves out what a string holds: `string "secret"` becomes `string`.
fn without_strings(text: &str) -> String {
    const OPEN: &str = "string \"";
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(OPEN) {
        let quote = start + OPEN.len() - 1;
        kept.push_str(&rest[..quote - 1]);
        // Debug output, whose closing quote is found as that of JSON.
        rest = &rest[token_end(rest.as_bytes(), quote)..];
    }
    kept + rest
}

/// Cuts the name that a payload holds and its type does not know.
fn with_short_name(text: &str) -> String {
    for opening in ["unknown variant `", "unknown field `"] {
        let Some(start) = text.find(opening).map(|start| start + opening.len()) else {
            continue;
        };
        let closings = ["`, expected ", "`, there are no "];
        let end = closings
            .iter()
            .filter_map(|closing| text.rfind(closing))
            .max();
        if let Some(end) = end.filter(|end| *end > start) {
            let name = shorten_to(NAME_CHARS_MAX, &text[start..end]);
            return format!("{}{name}{}", &text[..start], &text[end..]);
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only whether it can be read matters")]
    struct Order {
        lines: Vec<Line>,
        #[serde(default)]
        paid: Option<Payment>,
        #[serde(default)]
        pair: (u8, u8),
        #[serde(default)]
        notes: BTreeMap<String, u8>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only whether it can be read matters")]
    #[serde(deny_unknown_fields)]
    struct Line {
        sku: String,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only whether it can be read matters")]
    enum Payment {
        Cash,
        Card { number: u64 },
    }

    #[track_caller]
    fn check<T: DeserializeOwned + std::fmt::Debug>(json: &str, expected: &str) {
        let error = serde_json::from_str::<T>(json).expect_err("the case cannot be read");
        let read = |text: &str| serde_json::from_str::<T>(text).err();
        let said = of_field("order", json, &error, &read);
        assert_eq!(said.to_string(), expected, "{json}");
    }

    #[test]
    fn a_wrong_value_is_named_by_its_path() {
        check::<Order>(
            r#"{"lines":[{"sku":"a"},{"sku":"b"},{"sku":7}]}"#,
            "$.order.lines[2].sku: invalid type: integer `7`, expected a string",
        );
        check::<Order>(
            "{ \"lines\" : [\n {\"sku\":\"a\"},\n {\"sku\" :\n null } ] }",
            "$.order.lines[1].sku: invalid type: null, expected a string",
        );
        check::<Order>(
            r#"{"lines":[{"sku":["a"]}]}"#,
            "$.order.lines[0].sku: invalid type: sequence, expected a string",
        );
        check::<Order>(
            r#"{"lines":[[7]]}"#,
            "$.order.lines[0][0]: invalid type: integer `7`, expected a string",
        );
        check::<Order>(
            r#"{"lines":{"a":1}}"#,
            "$.order.lines: invalid type: map, expected a sequence",
        );
        check::<Order>(
            r#"{"lines":[],"notes":{"a":1,"b":-1}}"#,
            "$.order.notes.b: invalid value: integer `-1`, expected u8",
        );
        check::<Order>(
            r#"{"lines":[],"pair":[1,256]}"#,
            "$.order.pair[1]: invalid value: integer `256`, expected u8",
        );
        check::<u8>("[]", "$.order: invalid type: sequence, expected u8");
        check::<u8>("{}", "$.order: invalid type: map, expected u8");
        check::<u8>("300", "$.order: invalid value: integer `300`, expected u8");
        check::<Vec<Vec<u8>>>(
            "[[],[[]]]",
            "$.order[1][0]: invalid type: sequence, expected u8",
        );
    }

    #[test]
    fn a_missing_field_is_named_at_the_path_of_its_object() {
        check::<Order>(
            r#"{"lines":[{"sku":"a"},{}]}"#,
            "$.order.lines[1]: missing field `sku`",
        );
        check::<Order>("{\"paid\":\"Cash\"}", "$.order: missing field `lines`");
        check::<Order>(
            r#"{"lines":[],"paid":{"Card":{"n":1}}}"#,
            "$.order.paid.Card: missing field `number`",
        );
        check::<Order>(
            r#"{"lines":[],"pair":[1]}"#,
            "$.order.pair: invalid length 1, expected a tuple of size 2",
        );
    }

    #[test]
    fn an_unknown_name_is_shown_with_those_expected() {
        check::<Order>(
            r#"{"lines":[],"paid":"Cheque"}"#,
            "$.order.paid: unknown variant `Cheque`, expected `Cash` or `Card`",
        );
        check::<Order>(
            r#"{"lines":[],"paid":{"Cheque":1}}"#,
            "$.order.paid: unknown variant `Cheque`, expected `Cash` or `Card`",
        );
        check::<Order>(
            r#"{"lines":[{"sku":"a","size":1}]}"#,
            "$.order.lines[0]: unknown field `size`, expected `sku`",
        );
    }

    #[test]
    fn what_a_string_holds_is_never_shown() {
        check::<u64>(
            r#""hun\"ter2""#,
            "$.order: invalid type: string, expected u64",
        );
        check::<char>(
            r#""hunter2""#,
            "$.order: invalid value: string, expected a character",
        );
        check::<Vec<Option<u8>>>(
            r#"[1,"4111 1111 \\ 1111"]"#,
            "$.order[1]: invalid type: string, expected u8",
        );
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = "x`, expected ".repeat(30);
        let json = format!(r#"{{"lines":[],"paid":"{long}"}}"#);
        let cut: String = long.chars().take(40).collect();
        check::<Order>(
            &json,
            &format!("$.order.paid: unknown variant `{cut}…`, expected `Cash` or `Card`"),
        );
        let json = format!(r#"{{"lines":[],"notes":{{"{}":-1}}}}"#, "k".repeat(300));
        check::<Order>(
            &json,
            &format!(
                "$.order.notes.{}…: invalid value: integer `-1`, expected u8",
                "k".repeat(40)
            ),
        );
    }

    #[derive(Debug, Deserialize)]
    #[serde(try_from = "String")]
    struct Mail;

    impl TryFrom<String> for Mail {
        type Error = String;

        fn try_from(text: String) -> Result<Self, String> {
            match text.starts_with('m') {
                true => Err(format!("not an address: {text}")),
                false => Ok(Self),
            }
        }
    }

    /// serde_json does not say where such a value stood.
    #[test]
    fn a_type_that_judges_by_itself_is_found_as_well() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code, reason = "only whether it can be read matters")]
        struct Letter {
            to: Vec<Mail>,
            from: Mail,
        }
        check::<Letter>(
            r#"{"to":["a",[],"m"],"from":"a"}"#,
            "$.order.to[1]: invalid type: sequence, expected a string",
        );
        check::<Letter>(
            r#"{"to":["a","m","a"],"from":"a"}"#,
            "$.order.to[1]: not an address: m",
        );
        check::<Letter>(
            r#"{"to":["a","m"],"from":"a"}"#,
            "$.order.to[1]: not an address: m",
        );
        check::<Letter>(r#"{"to":[],"from":"m"}"#, "$.order.from: not an address: m");
    }

    #[test]
    fn a_number_is_never_tried_in_part() {
        #[derive(Debug, Deserialize)]
        #[serde(try_from = "u32")]
        struct Ten;
        impl TryFrom<u32> for Ten {
            type Error = &'static str;
            fn try_from(number: u32) -> Result<Self, &'static str> {
                (number > 9).then_some(Self).ok_or("too small")
            }
        }
        check::<Vec<Ten>>("[10,11,12345,5,13]", "$.order[3]: too small");
    }

    #[test]
    fn what_is_read_as_a_whole_is_at_fault_as_a_whole() {
        #[derive(Debug, Deserialize)]
        #[allow(dead_code, reason = "only whether it can be read matters")]
        #[serde(untagged)]
        enum Either {
            Number(u8),
            Pair { a: u8 },
        }
        check::<Vec<Either>>(
            r#"[1,{"a":2},{"a":{"b":3}},4]"#,
            "$.order[2]: data did not match any variant of untagged enum Either",
        );
    }

    #[test]
    fn the_words_of_a_types_own_error_are_bounded() {
        let json = format!("[\"{}\"]", "m".repeat(10_000));
        let read = |text: &str| serde_json::from_str::<Vec<Mail>>(text).err();
        let said = of_field("to", &json, &read(&json).expect("no address"), &read);
        assert_eq!(said.path, "$.to[0]");
        assert!(said.rule.starts_with("not an address: mmm"), "{said}");
        assert_eq!(said.rule.chars().count(), RULE_CHARS_MAX + 1);
    }
}
