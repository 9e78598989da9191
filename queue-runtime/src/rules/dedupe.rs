//! Keys and fingerprints: what may be a key, and when two requests are the same request.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::error::EnqueueError;
use crate::job::{
    Dedupe, DedupeUntil, Fingerprint, Idempotency, JobId, JobState, OnDuplicate, shorten,
};

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
/// object keys sorted, no white space, numbers as written, and nothing for a key whose value is
/// `null`. Field order and map order therefore do not matter, and a request that was made before an
/// optional field was added is the same one after it. `payload` must be a JSON object; anything else digests as one unnamed field.
pub fn fingerprint(payload: &str) -> Fingerprint {
    let fields: BTreeMap<String, &RawValue> = match serde_json::from_str(payload) {
        Ok(fields) => fields,
        Err(_) => return Fingerprint::from_stored(format!(r#"{{"":"{}"}}"#, digest(payload))),
    };
    let digests: BTreeMap<_, _> = fields
        .iter()
        .filter(|(_, value)| value.get() != NULL)
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

/// A stored job that may answer for a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The job.
    pub id: JobId,
    /// Where it stands, or where it ended if retention has removed it.
    pub state: JobState,
    /// Whether its payload is another one than the newcomer's.
    pub payload_differs: bool,
}

/// What a newcomer with keys meets in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// The request that its idempotency key is still remembered for.
    pub request: Option<(Holder, Fingerprint)>,
    /// The job that holds its dedupe key for a window.
    pub window: Option<Holder>,
    /// The live job of its dedupe key, and the one waiting behind it.
    pub slots: [Option<Holder>; 2],
}

/// What becomes of a newcomer with keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is stored, in this slot of its dedupe key.
    Insert {
        /// The slot.
        slot: u8,
    },
    /// An existing job answers for it.
    Merge {
        /// The job.
        holder: Holder,
        /// Whether that job takes over the newcomer's payload.
        rewrite: bool,
        /// Whether the newcomer's idempotency key is bound to that job.
        bind: bool,
    },
    /// Its idempotency key belongs to a request with another payload.
    Conflict {
        /// The job that the key belongs to.
        existing: JobId,
        /// The payload fields that differ, sorted.
        fields: Vec<String>,
    },
}

/// Decides what becomes of a newcomer from its keys and what they meet; idempotency comes first.
pub fn decide(idempotency: Option<&Idempotency>, dedupe: Option<&Dedupe>, met: &Met) -> Decision {
    if let (Some(asked), Some((holder, remembered))) = (idempotency, &met.request) {
        if *remembered == asked.fingerprint {
            let holder = Holder {
                payload_differs: false,
                ..*holder
            };
            return Decision::Merge {
                holder,
                rewrite: false,
                bind: false,
            };
        }
        let fields = differing_fields(remembered.as_str(), asked.fingerprint.as_str());
        return Decision::Conflict {
            existing: holder.id,
            fields,
        };
    }
    let Some(dedupe) = dedupe else {
        return Decision::Insert { slot: 0 };
    };
    let merge = |holder: Holder, rewrite| {
        let bind = idempotency.is_some();
        Decision::Merge {
            holder,
            rewrite,
            bind,
        }
    };
    if let DedupeUntil::Window(_) = dedupe.until {
        let replaces = dedupe.on_duplicate == OnDuplicate::Replace;
        return match met.window {
            Some(holder) => merge(holder, replaces && holder.state == JobState::Queued),
            None => Decision::Insert { slot: 0 },
        };
    }
    let live = met.slots[0].map(|holder| match holder.state {
        JobState::Processing => SlotHolder::Processing,
        _ => SlotHolder::Waiting,
    });
    match place(dedupe.on_duplicate, live, met.slots[1].is_some()) {
        Placement::Insert { slot } => Decision::Insert { slot },
        Placement::Answer { slot, rewrite } => match met.slots[usize::from(slot)] {
            Some(holder) => merge(holder, rewrite),
            None => Decision::Insert { slot },
        },
    }
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

/// The dedupe keys around an edit of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditedKey<'a> {
    /// What the job's row holds.
    pub stored: Option<&'a str>,
    /// What follows from the payload before the edit; `None` if that payload cannot be read.
    pub before: Option<Option<&'a str>>,
    /// What follows from the payload after the edit.
    pub after: Option<&'a str>,
}

/// Decides which dedupe key a job's row holds after an edit of its payload. An edit that leaves the
/// fields of the key alone leaves the row's key alone, also one that was given by hand or given up
/// already. A key that is held for a window belongs to the insert, and no row ever holds it.
pub fn edited_key<'a>(keys: &EditedKey<'a>, until: DedupeUntil) -> Option<&'a str> {
    let EditedKey {
        stored,
        before,
        after,
    } = *keys;
    match (after, until) {
        (None, _) | (_, DedupeUntil::Window(_)) => stored,
        (Some(_), _) if before == Some(after) => stored,
        (Some(_), _) => after,
    }
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What an option that is not given is stored as.
const NULL: &str = "null";

/// Writes JSON with object keys sorted, without those that hold `null`, and no white space. Numbers
/// and strings are kept as written, so that integers beyond 64 bits stay apart.
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
            for (name, value) in fields.into_iter().filter(|(_, value)| value.get() != NULL) {
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
    fn an_option_that_was_added_and_is_not_given_does_not_make_another_request() {
        let before = fingerprint(r#"{"order":{"id":7}}"#);
        let after = fingerprint(r#"{"order":{"id":7,"gift":null},"note":null}"#);
        assert_eq!(before, after);
        let given = fingerprint(r#"{"order":{"id":7,"gift":true},"note":"x"}"#);
        assert_eq!(
            differing_fields(before.as_str(), given.as_str()),
            ["note", "order"]
        );
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

    #[test]
    fn only_an_edit_of_its_fields_changes_a_key() {
        const FINISHED: DedupeUntil = DedupeUntil::Finished;
        const WINDOW: DedupeUntil = DedupeUntil::Window(std::time::Duration::from_secs(1));
        let held = |stored, before, after, until| {
            let keys = EditedKey {
                stored,
                before,
                after,
            };
            edited_key(&keys, until)
        };
        let (a, b, hand) = (Some("a"), Some("b"), Some("by hand"));
        assert_eq!(held(a, Some(a), b, FINISHED), b);
        assert_eq!(held(a, Some(a), a, FINISHED), a);
        assert_eq!(held(hand, Some(a), a, FINISHED), hand, "given by hand");
        assert_eq!(held(hand, Some(a), b, FINISHED), b);
        assert_eq!(
            held(hand, Some(None), None, FINISHED),
            hand,
            "none declared"
        );
        assert_eq!(
            held(None, Some(a), a, DedupeUntil::Started),
            None,
            "given up"
        );
        assert_eq!(held(None, Some(a), b, DedupeUntil::Started), b);
        assert_eq!(held(a, None, a, FINISHED), a, "unreadable before");
        assert_eq!(held(a, None, b, FINISHED), b);
        assert_eq!(held(None, Some(a), b, WINDOW), None);
    }

    #[test]
    fn a_remembered_request_answers_before_a_dedupe_key_does() {
        let holder = |n| Holder {
            id: crate::seam::uuid_v7(n, n),
            state: JobState::Processing,
            payload_differs: true,
        };
        let print = |text| Fingerprint::from_stored(format!(r#"{{"a":"{text}"}}"#));
        let asked = |text| Idempotency {
            key: "i".to_owned(),
            fingerprint: print(text),
            window: std::time::Duration::from_secs(1),
        };
        let dedupe = Dedupe {
            key: "d".to_owned(),
            until: DedupeUntil::Finished,
            on_duplicate: OnDuplicate::Keep,
        };
        let met = Met {
            request: Some((holder(1), print("x"))),
            slots: [Some(holder(2)), None],
            ..Met::default()
        };

        let same = Holder {
            payload_differs: false,
            ..holder(1)
        };
        let answer = Decision::Merge {
            holder: same,
            rewrite: false,
            bind: false,
        };
        assert_eq!(decide(Some(&asked("x")), Some(&dedupe), &met), answer);
        let (existing, fields) = (holder(1).id, vec!["a".to_owned()]);
        let conflict = Decision::Conflict { existing, fields };
        assert_eq!(decide(Some(&asked("y")), Some(&dedupe), &met), conflict);
        let bound = Decision::Merge {
            holder: holder(2),
            rewrite: false,
            bind: true,
        };
        let forgotten = Met {
            request: None,
            ..met
        };
        assert_eq!(decide(Some(&asked("x")), Some(&dedupe), &forgotten), bound);
        let stored = Decision::Insert { slot: 0 };
        assert_eq!(decide(Some(&asked("x")), None, &forgotten), stored);
    }
}
