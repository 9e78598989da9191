//! Finds the value at which reading JSON fails.
//!
//! It is where the shortest beginning of the text ends that fails for the same reason. That is searched
//! with the reader that failed: what can be read costs nothing more, and no type is compiled a second
//! time.

use super::fault::NAME_CHARS_MAX;
use super::ids::shorten_to;

/// The way to the value at which reading `json` fails. About twenty texts are tried for the largest
/// payload.
pub(super) fn path_of_fault(json: &str, fails_alike: impl Fn(&str) -> bool) -> String {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < json.len() {
        at = token_end(json.as_bytes(), at);
        ends.push(at);
    }
    let first = ends.partition_point(|end| !fails_alike(&json[..*end]));
    // If nothing fails alike, the fault is one of the whole value.
    let end = ends.get(first).copied().unwrap_or(json.len());
    path(json.as_bytes(), end)
}

/// An object or array around the place, and the way on from it.
enum Level<'j> {
    Object { key: Option<&'j [u8]> },
    Array { index: usize },
}

/// The way to the value to which the token belongs that ends at `end`. A key belongs to its object,
/// as brackets do to what they enclose.
fn path(json: &[u8], end: usize) -> String {
    let mut open: Vec<Level<'_>> = Vec::new();
    let mut at = 0;
    while at < end {
        let begin = at;
        at = token_end(json, begin);
        let reached = at >= end;
        match json[begin] {
            b',' => match open.last_mut() {
                Some(Level::Object { key }) => *key = None,
                Some(Level::Array { index }) => *index += 1,
                None => {}
            },
            b'[' if !reached => open.push(Level::Array { index: 0 }),
            b'{' if !reached => open.push(Level::Object { key: None }),
            b']' | b'}' => drop(open.pop()),
            b'"' => match open.last_mut() {
                Some(Level::Object { key: None }) if reached => drop(open.pop()),
                Some(Level::Object { key: key @ None }) => {
                    *key = Some(&json[begin + 1..at - 1]);
                }
                _ => {}
            },
            _ => {}
        }
    }
    way(&open)
}

/// Where the token ends that begins at `at`: a string, a number, a word, or a single sign.
pub(super) fn token_end(json: &[u8], at: usize) -> usize {
    const SIGNS: &[u8] = b"{}[],: \t\r\n";
    let rest = &json[at + 1..];
    let length = match json[at] {
        b'"' => {
            let mut escaped = false;
            let quote = rest.iter().position(|byte| {
                let ends = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                ends
            });
            quote.map_or(rest.len(), |quote| quote + 1)
        }
        sign if SIGNS.contains(&sign) => 0,
        _ => {
            let next = rest.iter().position(|byte| SIGNS.contains(byte));
            next.unwrap_or(rest.len())
        }
    };
    at + 1 + length
}

fn way(open: &[Level<'_>]) -> String {
    let steps = open.iter().map(|level| match level {
        Level::Object { key: Some(key) } => {
            let key = String::from_utf8_lossy(key);
            format!(".{}", shorten_to(NAME_CHARS_MAX, &key))
        }
        Level::Object { key: None } => String::new(),
        Level::Array { index } => format!("[{index}]"),
    });
    steps.collect()
}
