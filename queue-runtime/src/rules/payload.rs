//! What a payload may look like, said with the place inside it that breaks the rule.
//!
//! The input is JSON text that a serialiser made, so it is well formed; one pass over its bytes
//! finds what it must not hold.

use crate::error::PayloadError;
pub use crate::job::PAYLOAD_DEPTH_MAX;
use crate::job::{PayloadReader, TOO_DEEP};

/// The largest payload, in bytes of JSON text.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Refuses a payload that is nested too deeply or holds NUL in a value or a key.
///
/// Stores keep a NUL escape faithfully, but much that reads the payload afterwards does not.
///
/// # Errors
/// [`PayloadError`] with the JSON path of the place.
pub fn check(payload: &str) -> Result<(), PayloadError> {
    let bytes = payload.as_bytes();
    let mut scan = Scan {
        bytes,
        at: 0,
        open: Vec::new(),
    };
    while scan.at < bytes.len() {
        scan.step()?;
    }
    Ok(())
}

/// Refuses text that nobody has looked at unless it is a JSON object that an enqueue would store.
///
/// # Errors
/// [`PayloadError`] with the JSON path of the place.
pub fn check_object(text: &str) -> Result<(), PayloadError> {
    let whole = |rule| PayloadError {
        path: "$".to_owned(),
        rule,
    };
    if text.len() > PAYLOAD_BYTES_MAX {
        return Err(whole(format!(
            "has {} bytes: at most {PAYLOAD_BYTES_MAX} are allowed",
            text.len()
        )));
    }
    if let Err(error) = PayloadReader::new(text) {
        return Err(whole(format!("must be a JSON object: {}", error.rule)));
    }
    check(text)
}

/// Refuses a payload schema of 0: they are numbered from 1.
///
/// # Errors
/// [`PayloadError`] about the payload as a whole.
pub fn check_schema(schema: u32) -> Result<(), PayloadError> {
    if schema > 0 {
        return Ok(());
    }
    Err(PayloadError {
        path: "$".to_owned(),
        rule: "its schema must be at least 1".to_owned(),
    })
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    open: Vec<Level<'a>>,
}

/// An object or array that is being read, and the place inside it.
enum Level<'a> {
    Object { key: Option<&'a [u8]> },
    Array { index: usize },
}

impl<'a> Scan<'a> {
    fn step(&mut self) -> Result<(), PayloadError> {
        match self.bytes[self.at] {
            b'{' => self.enter(Level::Object { key: None })?,
            b'[' => self.enter(Level::Array { index: 0 })?,
            b'}' | b']' => drop(self.open.pop()),
            b',' => match self.open.last_mut() {
                Some(Level::Object { key }) => *key = None,
                Some(Level::Array { index }) => *index += 1,
                None => {}
            },
            b'"' => return self.string(),
            _ => {}
        }
        self.at += 1;
        Ok(())
    }

    fn enter(&mut self, level: Level<'a>) -> Result<(), PayloadError> {
        if self.open.len() == PAYLOAD_DEPTH_MAX {
            return self.refuse(TOO_DEEP.to_owned());
        }
        self.open.push(level);
        Ok(())
    }

    fn string(&mut self) -> Result<(), PayloadError> {
        let start = self.at + 1;
        let mut end = start;
        let mut nul = false;
        while self.bytes.get(end).is_some_and(|byte| *byte != b'"') {
            let escaped = self.bytes[end] == b'\\';
            nul |= self.bytes[end..].starts_with(b"\\u0000");
            end += if escaped { 2 } else { 1 };
        }
        self.at = end + 1;
        let text = &self.bytes[start..end.min(self.bytes.len())];
        let is_key = matches!(self.open.last(), Some(Level::Object { key: None }));
        if let Some(Level::Object { key: key @ None }) = self.open.last_mut() {
            *key = Some(text);
        }
        match (nul, is_key) {
            (false, _) => Ok(()),
            (true, true) => self.refuse("a key must not hold NUL".to_owned()),
            (true, false) => self.refuse("text must not hold NUL".to_owned()),
        }
    }

    fn refuse(&self, rule: String) -> Result<(), PayloadError> {
        let mut path = String::from("$");
        for level in &self.open {
            match level {
                Level::Object { key: Some(key) } => {
                    path.push('.');
                    path.push_str(&String::from_utf8_lossy(key));
                }
                Level::Object { key: None } => {}
                Level::Array { index } => path.push_str(&format!("[{index}]")),
            }
        }
        Err(PayloadError { path, rule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(payload: &str) -> String {
        check(payload).map_or_else(|e| e.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn a_nul_is_found_with_its_path() {
        assert_eq!(
            said(r#"{"a":{"b":["x",1,{"y":"}]"},"n\u0000"]}}"#),
            "$.a.b[3]: text must not hold NUL"
        );
        assert_eq!(
            said(r#"{"a":1,"k\u0000":2}"#),
            r"$.k\u0000: a key must not hold NUL"
        );
    }

    #[test]
    fn an_escaped_backslash_before_u0000_is_no_nul() {
        assert_eq!(said(r#"{"a":"\\u0000","b":"\"\\"}"#), "ok");
    }

    #[test]
    fn text_that_is_no_object_is_refused_as_a_whole() {
        let said = |text: &str| check_object(text).map_or_else(|e| e.to_string(), |()| "ok".into());
        assert_eq!(said(r#" { "a" : [1, {}] } "#), "ok");
        for text in [
            "",
            "7",
            "null",
            "[]",
            r#""{}""#,
            "{",
            r#"{"a":}"#,
            "{} {}",
            "{a:1}",
        ] {
            let said = said(text);
            assert!(
                said.starts_with("$: must be a JSON object: "),
                "{text}: {said}"
            );
        }
        assert_eq!(said(r#"{"a":"\u0000"}"#), "$.a: text must not hold NUL");
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(PAYLOAD_BYTES_MAX));
        assert_eq!(
            said(&long),
            "$: has 1048584 bytes: at most 1048576 are allowed"
        );
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(64), "]".repeat(64));
        assert!(said(&deep).ends_with("must be nested at most 64 levels deep"));
        assert!(check_schema(0).is_err() && check_schema(1).is_ok());
    }

    #[test]
    fn nesting_one_level_too_deep_is_refused() {
        let nested = |depth: usize| {
            format!(
                "{{\"a\":{}1{}}}",
                "[".repeat(depth - 1),
                "]".repeat(depth - 1)
            )
        };
        assert_eq!(said(&nested(64)), "ok");
        assert!(said(&nested(65)).ends_with("must be nested at most 64 levels deep"));
        assert!(said(&nested(65)).starts_with("$.a[0][0]"));
    }
}
