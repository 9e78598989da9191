//! Keys and fingerprints: what may be a key, and when two requests are the same request.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::error::EnqueueError;
use crate::job::{Fingerprint, OnDuplicate, shorten};

/// The longest dedupe, idempotency or cache key, in bytes.
pub const KEY_BYTES_MAX: usize = 1_024;

/// Refuses a key that is empty, too long or holds NUL.
///
/// # Errors
/// [`EnqueueError::InvalidKey`].
pub fn check_key(what: &'static str, key: &str) -> Result<(), EnqueueError> {
    let refuse = |rule: String| {
        Err(EnqueueError::InvalidKey {
            what,
            value: shorten(key),
            rule,
        })
    };
    if key.is_empty() {
        return refuse("must not be empty; leave it out for no key".to_owned());
    }
    if key.len() > KEY_BYTES_MAX {
        return refuse(format!(
            "must be at most {KEY_BYTES_MAX} bytes; it has {}",
            key.len()
        ));
    }
    match key.find('\0') {
        Some(index) => refuse(format!("must not hold NUL; found at byte {index}")),
        None => Ok(()),
    }
}

/// Digests each top-level field of a payload, so that two requests can be told apart field by
/// field without keeping their values.
///
/// A digest is the first 32 hexadecimal digits (128 bits) of SHA-256 over the field's canonical JSON:
/// object keys sorted, no white space, numbers as written. Field order and map order therefore
/// do not matter. `payload` must be a JSON object; anything else digests as one unnamed field.
pub fn fingerprint(payload: &str) -> Fingerprint {
    let fields: BTreeMap<String, &RawValue> = match serde_json::from_str(payload) {
        Ok(fields) => fields,
        Err(_) => return Fingerprint::from_stored(format!(r#"{{"":"{}"}}"#, digest(payload))),
    };
    let digests: BTreeMap<_, _> = fields
        .iter()
        .map(|(name, value)| {
            let mut canonical = String::new();
            canonicalise(value, &mut canonical);
            (name, digest(&canonical))
        })
        .collect();
    let text = serde_json::to_string(&digests).expect("a map of strings is always JSON");
    Fingerprint::from_stored(text)
}

/// Returns the names of the fields in which two stored fingerprints differ, sorted.
pub fn differing_fields(stored: &str, new: &str) -> Vec<String> {
    let read = |text| serde_json::from_str::<BTreeMap<String, String>>(text).unwrap_or_default();
    let (stored, new) = (read(stored), read(new));
    let mut names: Vec<_> = stored
        .iter()
        .filter(|(name, digest)| new.get(*name) != Some(digest))
        .chain(new.iter().filter(|(name, _)| !stored.contains_key(*name)))
        .map(|(name, _)| name.clone())
        .collect();
    names.sort();
    names
}

/// What an enqueue does about the live jobs that hold its dedupe key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Stores the newcomer in this slot: 0 is the live job, 1 the one waiting behind it.
    Insert {
        /// The slot.
        slot: u8,
    },
    /// The job in this slot answers; `rewrite` says that it takes over the newcomer's payload.
    Answer {
        /// The slot.
        slot: u8,
        /// Whether its payload is replaced.
        rewrite: bool,
    },
}

/// Decides where a keyed newcomer goes, from the mode and what is in the slots: whether the live
/// job (slot 0) is waiting or processing, and whether one waits behind it (slot 1).
pub fn place(mode: OnDuplicate, slot_0: Option<SlotHolder>, slot_1_taken: bool) -> Placement {
    let Some(holder) = slot_0 else {
        return Placement::Insert { slot: 0 };
    };
    let rewrite = mode == OnDuplicate::Replace;
    match (mode, holder) {
        (OnDuplicate::Keep, _) => Placement::Answer {
            slot: 0,
            rewrite: false,
        },
        (_, _) if slot_1_taken => Placement::Answer { slot: 1, rewrite },
        (_, SlotHolder::Waiting) => Placement::Answer { slot: 0, rewrite },
        (_, SlotHolder::Processing) => Placement::Insert { slot: 1 },
    }
}

/// What the live job of a dedupe key is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotHolder {
    /// It waits: its payload can still be replaced.
    Waiting,
    /// It runs: a change made now may have come too late for it.
    Processing,
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Writes JSON with object keys sorted and no white space. Numbers and strings are kept as
/// written, so that integers beyond 64 bits stay apart.
fn canonicalise(value: &RawValue, out: &mut String) {
    let text = value.get();
    let nested = match text.as_bytes().first() {
        Some(b'{') => serde_json::from_str(text).map(Nested::Object),
        Some(b'[') => serde_json::from_str(text).map(Nested::Array),
        _ => return out.push_str(text),
    };
    match nested {
        Ok(Nested::Object(fields)) => {
            out.push('{');
            for (name, value) in fields {
                out.push_str(&serde_json::Value::from(name).to_string());
                out.push(':');
                canonicalise(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Ok(Nested::Array(items)) => {
            out.push('[');
            for item in items {
                canonicalise(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Err(_) => out.push_str(text),
    }
}

enum Nested<'a> {
    Object(BTreeMap<String, &'a RawValue>),
    Array(Vec<&'a RawValue>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_order_and_white_space_do_not_change_a_fingerprint() {
        let one = fingerprint(r#"{"a":1,"b":{"x":[1,2],"y":null}}"#);
        let two = fingerprint(r#"{ "b" : {"y":null, "x":[1, 2]}, "a":1 }"#);
        assert_eq!(one, two);
    }

    #[test]
    fn a_conflict_names_the_fields_that_differ_and_no_value() {
        let one = fingerprint(r#"{"amount":100,"user":7,"note":"secret"}"#);
        let two = fingerprint(r#"{"amount":200,"user":7,"extra":true}"#);
        assert_eq!(
            differing_fields(one.as_str(), two.as_str()),
            ["amount", "extra", "note"]
        );
        assert!(!one.as_str().contains("secret"));
    }

    #[test]
    fn integers_beyond_64_bits_stay_apart() {
        let one = fingerprint(r#"{"n":340282366920938463463374607431768211455}"#);
        let two = fingerprint(r#"{"n":340282366920938463463374607431768211454}"#);
        assert_eq!(differing_fields(one.as_str(), two.as_str()), ["n"]);
    }

    #[test]
    fn text_that_looks_like_structure_does_not_collide_with_structure() {
        let one = fingerprint(r#"{"a":["x,y"]}"#);
        let two = fingerprint(r#"{"a":["x","y"]}"#);
        assert_ne!(one, two);
    }

    fn check(key: &str, expected: &str) {
        let said =
            check_key("dedupe key", key).map_or_else(|e| e.to_string(), |()| "ok".to_owned());
        assert!(said.starts_with(expected), "{said}");
    }

    #[test]
    fn a_key_says_which_rule_it_breaks() {
        check(&"k".repeat(1_024), "ok");
        check("", r#"dedupe key "": must not be empty; leave it out"#);
        check(
            "a\0b",
            r#"dedupe key "a\0b": must not hold NUL; found at byte 1"#,
        );
        let error = check_key("dedupe key", &"k".repeat(1_025)).expect_err("over the bound");
        assert!(
            error
                .to_string()
                .ends_with("must be at most 1024 bytes; it has 1025")
        );
    }

    #[test]
    fn every_mode_meets_every_holder() {
        use OnDuplicate::{Keep, Replace, Rerun};
        use SlotHolder::{Processing, Waiting};
        let insert = |slot| Placement::Insert { slot };
        let answer = |slot, rewrite| Placement::Answer { slot, rewrite };
        for mode in [Keep, Replace, Rerun] {
            assert_eq!(place(mode, None, false), insert(0));
        }
        assert_eq!(place(Keep, Some(Waiting), false), answer(0, false));
        assert_eq!(place(Keep, Some(Processing), true), answer(0, false));
        assert_eq!(place(Replace, Some(Waiting), false), answer(0, true));
        assert_eq!(place(Replace, Some(Processing), false), insert(1));
        assert_eq!(place(Replace, Some(Processing), true), answer(1, true));
        assert_eq!(place(Replace, Some(Waiting), true), answer(1, true));
        assert_eq!(place(Rerun, Some(Waiting), false), answer(0, false));
        assert_eq!(place(Rerun, Some(Processing), false), insert(1));
        assert_eq!(place(Rerun, Some(Processing), true), answer(1, false));
    }
}
