//! The fields of a stored payload as they are stored, to be changed before they are read.
//!
//! Values stay the text that they were: numbers of any size keep their digits, and the order of
//! the fields is kept. Nothing here knows which fields a job has.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::payload::PayloadReader;
use super::{fault, payload, walk};
use crate::error::PayloadError;

/// The fields of a stored payload, as an [`upcast`](macro@crate::job) is given them.
///
/// ```
/// use queue_runtime::PayloadFields;
///
/// # fn main() -> Result<(), queue_runtime::error::PayloadError> {
/// let mut fields = PayloadFields::new(r#"{"user":7,"mail":"ada@example.org","old":true}"#)?;
/// fields.rename("user", "user_id")?;
/// fields.set("copies", &(1 + u8::from(fields.get::<bool>("old")?)))?;
/// fields.remove("old");
/// assert_eq!(
///     fields.to_string(),
///     r#"{"user_id":7,"mail":"ada@example.org","copies":2}"#
/// );
/// # Ok(())
/// # }
/// ```
///
/// An error names the field. `Debug` shows the names of the fields and no values; `Display` is the
/// payload itself.
#[derive(Clone, Default)]
pub struct PayloadFields {
    fields: BTreeMap<String, Kept>,
    /// The place of the next new field.
    next: usize,
}

/// A value, and where it stands among the others.
#[derive(Clone)]
struct Kept {
    place: usize,
    value: Box<RawValue>,
}

impl PayloadFields {
    /// Takes a payload apart. Of a field that is stored twice the last value counts.
    ///
    /// # Errors
    /// If the text is not a JSON object.
    pub fn new(payload: &str) -> Result<Self, PayloadError> {
        serde_json::from_str(payload).map_err(|error| fault::of_payload(&error))
    }

    /// Reads a field; a missing one is `None` for an `Option`.
    ///
    /// # Errors
    /// If it is missing or is not such a value; the path leads to the place inside it.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, PayloadError> {
        match self.fields.get(name) {
            Some(kept) => payload::read(name, &kept.value),
            None => payload::absent().ok_or_else(|| fault::missing(name)),
        }
    }

    /// Sets a field: in its place if it exists, otherwise behind all others.
    ///
    /// # Errors
    /// If the value cannot be JSON, as when it is enqueued; the field is left as it was.
    pub fn set<T: Serialize + ?Sized>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), PayloadError> {
        walk::check(name, value)?;
        let value = serde_json::value::to_raw_value(value).map_err(|error| PayloadError {
            path: format!("$.{name}"),
            rule: error.to_string(),
        })?;
        self.put(name.to_owned(), value);
        Ok(())
    }

    /// Removes a field; says whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.fields.remove(name).is_some()
    }

    /// Gives a field another name; its value and its place stay.
    ///
    /// # Errors
    /// If there is no field `old`, or there is one called `new` already, which would be lost.
    pub fn rename(&mut self, old: &str, new: &str) -> Result<(), PayloadError> {
        if !self.contains(old) {
            return Err(fault::missing(old));
        }
        if old != new && self.contains(new) {
            return Err(PayloadError {
                path: format!("$.{new}"),
                rule: format!("there already, so `{old}` cannot be renamed to it"),
            });
        }
        if let Some(kept) = self.fields.remove(old) {
            self.fields.insert(new.to_owned(), kept);
        }
        Ok(())
    }

    /// Says whether a field is stored; also if it holds `null`.
    pub fn contains(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Returns the names of the fields, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.in_order().map(|(name, _)| name)
    }

    /// What a job's `decode` reads.
    pub(crate) fn into_reader(self) -> PayloadReader<'static> {
        let fields = self.fields.into_iter();
        PayloadReader::of(fields.map(|(name, kept)| (name, kept.value)))
    }

    fn put(&mut self, name: String, value: Box<RawValue>) {
        let place = self.next;
        let kept = Kept { place, value };
        let place = self
            .fields
            .get(&name)
            .map_or(place, |earlier| earlier.place);
        self.fields.insert(name, Kept { place, ..kept });
        self.next += 1;
    }

    fn in_order(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        let mut fields: Vec<_> = self.fields.iter().collect();
        fields.sort_unstable_by_key(|(_, kept)| kept.place);
        let fields = fields.into_iter();
        fields.map(|(name, kept)| (name.as_str(), &*kept.value))
    }
}

/// The payload as it would be stored.
impl fmt::Display for PayloadFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for PayloadFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.keys().collect();
        f.debug_tuple("PayloadFields").field(&names).finish()
    }
}

impl Serialize for PayloadFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in self.in_order() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for PayloadFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = PayloadFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PayloadFields, A::Error> {
                let mut fields = PayloadFields::default();
                while let Some((name, value)) = map.next_entry()? {
                    fields.put(name, value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(payload: &str) -> PayloadFields {
        PayloadFields::new(payload).expect("the case is an object")
    }

    #[test]
    fn fields_keep_their_order_and_numbers_their_digits() {
        let payload = r#"{"z":340282366920938463463374607431768211455,"a":1.50,"m":[ 1 ]}"#;
        let kept = fields(payload);
        assert_eq!(kept.to_string(), payload);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["z", "a", "m"]);
        assert_eq!(kept.get::<u128>("z"), Ok(u128::MAX));
    }

    #[test]
    fn a_field_that_is_set_or_renamed_keeps_its_place_and_a_new_one_is_last() {
        let mut fields = fields(r#"{"a":1,"b":2,"c":3}"#);
        fields.rename("a", "z").expect("a is there");
        fields.set("b", "two").expect("text is JSON");
        fields.set("new", &4_u8).expect("a number is JSON");
        assert!(fields.remove("c") && !fields.remove("c"));
        assert_eq!(fields.to_string(), r#"{"z":1,"b":"two","new":4}"#);
        fields.rename("b", "b").expect("nothing changes");
        assert!(fields.contains("b"));
    }

    #[test]
    fn of_a_field_stored_twice_the_last_value_counts_as_when_it_is_decoded() {
        let payload = r#"{"a":1,"b":2,"a":3}"#;
        assert_eq!(fields(payload).to_string(), r#"{"a":3,"b":2}"#);
        let read = u8::take(&PayloadReader::new(payload).expect("an object"), "a");
        assert_eq!(read, fields(payload).get("a"));
    }

    #[test]
    fn an_error_names_the_field_and_loses_nothing() {
        let mut fields = fields(r#"{"a":{"n":["x"]},"b":2}"#);
        let before = fields.to_string();
        let said = |error: PayloadError| error.to_string();
        assert_eq!(
            fields.get::<u8>("c").map_err(said),
            Err("$: missing field `c`".to_owned())
        );
        assert_eq!(fields.get::<Option<u8>>("c"), Ok(None));
        assert_eq!(
            fields.get::<BTreeMap<String, Vec<u8>>>("a").map_err(said),
            Err("$.a.n[0]: invalid type: string, expected u8".to_owned())
        );
        assert_eq!(
            fields.rename("c", "d").map_err(said),
            Err("$: missing field `c`".to_owned())
        );
        assert_eq!(
            fields.rename("a", "b").map_err(said),
            Err("$.b: there already, so `a` cannot be renamed to it".to_owned())
        );
        assert_eq!(
            fields.set("a", &[1.0, f64::NAN]).map_err(said),
            Err("$.a[1]: NaN is not representable in JSON".to_owned())
        );
        assert_eq!(fields.to_string(), before);
    }

    #[test]
    fn debug_output_shows_no_values() {
        let shown = format!("{:?}", fields(r#"{"card":"4111"}"#));
        assert_eq!(shown, r#"PayloadFields(["card"])"#);
    }

    #[test]
    fn a_payload_that_is_no_object_is_refused_without_showing_it() {
        let said = |payload| PayloadFields::new(payload).expect_err(payload).to_string();
        assert_eq!(
            said(r#""hunter2""#),
            "$: invalid type: string, expected an object"
        );
        assert!(said("{").starts_with("$: EOF while parsing"));
    }

    use super::super::PayloadArg as _;
}
