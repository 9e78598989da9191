//! Typed arguments to JSON text and back, field by field, so that an error names its field.
//!
//! Integers of any size keep their digits; unknown stored fields are ignored; a missing `Option`
//! is `None`. Nothing here judges size, depth or text: the enqueue stage does.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::value::RawValue;

use super::shape::Traced;
use super::{fault, walk};
use crate::error::PayloadError;

/// Collects payload fields into one JSON object.
#[derive(Debug)]
pub struct PayloadWriter {
    text: String,
}

impl Default for PayloadWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl PayloadWriter {
    /// Starts an empty object.
    pub fn new() -> Self {
        Self {
            text: String::from("{"),
        }
    }

    /// Adds a field; names are the handler's argument names and need no escaping.
    ///
    /// # Errors
    /// If the value cannot be JSON: a map with keys that are no strings, a number that is not
    /// finite, nesting beyond 64 levels, or its own `Serialize` fails.
    pub fn field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), PayloadError> {
        walk::check(name, value)?;
        let text = serde_json::to_string(value).map_err(|e| PayloadError {
            path: format!("$.{name}"),
            rule: e.to_string(),
        })?;
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
        self.text.push_str(&text);
        Ok(())
    }

    /// Ends the object and returns its text.
    pub fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }
}

/// Reads the fields of a stored payload.
#[derive(Debug)]
pub struct PayloadReader<'a>(Fields<'a>);

#[derive(Debug)]
enum Fields<'a> {
    /// As they stand in the stored text.
    Stored(BTreeMap<String, &'a RawValue>),
    /// As an upcast left them.
    Changed(BTreeMap<String, Box<RawValue>>),
}

impl<'a> PayloadReader<'a> {
    /// Reads the outermost object; values are looked at when they are taken.
    ///
    /// # Errors
    /// If the text is not a JSON object.
    pub fn new(payload: &'a str) -> Result<Self, PayloadError> {
        serde_json::from_str(payload)
            .map(|fields| Self(Fields::Stored(fields)))
            .map_err(|error| fault::of_payload(&error))
    }

    /// Reads these fields.
    pub(super) fn of(fields: impl Iterator<Item = (String, Box<RawValue>)>) -> Self {
        Self(Fields::Changed(fields.collect()))
    }

    fn find(&self, names: &[&'static str]) -> Option<(&'static str, &RawValue)> {
        let value = |name: &str| match &self.0 {
            Fields::Stored(fields) => fields.get(name).copied(),
            Fields::Changed(fields) => fields.get(name).map(|value| &**value),
        };
        names
            .iter()
            .find_map(|name| value(name).map(|value| (*name, value)))
    }
}

/// A value that can be an argument of a job: anything serde can write and read back.
#[diagnostic::on_unimplemented(
    message = "argument type `{Self}` cannot be stored in a job payload",
    label = "not a payload type",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it (the value must own its data)",
    note = "if it is shared state, take it as `Data<..>`, or mark the argument with `#[inject]`"
)]
pub trait PayloadArg: Sized + 'static {
    /// Writes the value under a name.
    ///
    /// # Errors
    /// If it cannot be JSON.
    fn put(&self, name: &'static str, writer: &mut PayloadWriter) -> Result<(), PayloadError>;

    /// Reads the value under the first of `names` that is stored; `None` if none is.
    ///
    /// # Errors
    /// If what is stored is not such a value.
    fn find(
        reader: &PayloadReader<'_>,
        names: &[&'static str],
    ) -> Result<Option<Self>, PayloadError>;

    /// Makes the value of a field that was not stored; only `Option` has one.
    fn absent() -> Option<Self>;

    /// Returns the shape of what is stored; `None` without the feature `shapes`, which costs one
    /// more instance of the type's `Deserialize`.
    fn traced() -> Option<Traced>;

    /// Reads the value under a name.
    ///
    /// # Errors
    /// If it is missing or not such a value.
    fn take(reader: &PayloadReader<'_>, name: &'static str) -> Result<Self, PayloadError> {
        Self::take_any(reader, &[name])
    }

    /// Reads the value under the first of several names that is stored.
    ///
    /// # Errors
    /// If none is stored or it is not such a value.
    fn take_any(reader: &PayloadReader<'_>, names: &[&'static str]) -> Result<Self, PayloadError> {
        match Self::find(reader, names)?.or_else(Self::absent) {
            Some(value) => Ok(value),
            None => Err(fault::missing(names[0])),
        }
    }

    /// Reads the value under the first of several names that is stored, or makes one.
    ///
    /// # Errors
    /// If what is stored is not such a value.
    fn take_or(
        reader: &PayloadReader<'_>,
        names: &[&'static str],
        default: fn() -> Self,
    ) -> Result<Self, PayloadError> {
        Ok(Self::find(reader, names)?.unwrap_or_else(default))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> PayloadArg for T {
    fn put(&self, name: &'static str, writer: &mut PayloadWriter) -> Result<(), PayloadError> {
        writer.field(name, self)
    }

    fn find(
        reader: &PayloadReader<'_>,
        names: &[&'static str],
    ) -> Result<Option<Self>, PayloadError> {
        let Some((name, value)) = reader.find(names) else {
            return Ok(None);
        };
        read(name, value).map(Some)
    }

    fn absent() -> Option<Self> {
        absent()
    }

    #[cfg(feature = "shapes")]
    fn traced() -> Option<Traced> {
        Some(Traced {
            shape: super::shape::trace::<T>(),
            // A type of the user's own may panic, and is then no option.
            optional: std::panic::catch_unwind(Self::absent).is_ok_and(|absent| absent.is_some()),
        })
    }

    #[cfg(not(feature = "shapes"))]
    fn traced() -> Option<Traced> {
        None
    }
}

/// Reads the stored value of a field.
pub(super) fn read<T: DeserializeOwned>(name: &str, value: &RawValue) -> Result<T, PayloadError> {
    let json = value.get();
    let failure = |text: &str| serde_json::from_str::<T>(text).err();
    serde_json::from_str(json).map_err(|error| fault::of_field(name, json, &error, &failure))
}

/// Makes the value of a field that is not stored; only an `Option` has one.
pub(super) fn absent<T: DeserializeOwned>() -> Option<T> {
    T::deserialize(Absent).ok()
}

/// Stands for a field that is not there: whoever asks for an option gets `None`, everybody else
/// an error.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::custom("missing"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_none()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<T: PayloadArg>(value: &T) -> Result<String, PayloadError> {
        let mut writer = PayloadWriter::new();
        value.put("a", &mut writer)?;
        value.put("b", &mut writer)?;
        Ok(writer.finish())
    }

    fn read<T: PayloadArg>(payload: &str) -> Result<T, PayloadError> {
        T::take(&PayloadReader::new(payload)?, "a")
    }

    #[test]
    fn values_come_back_as_they_were() {
        assert_eq!(written(&7_u8).expect("a number"), r#"{"a":7,"b":7}"#);
        assert_eq!(
            read::<u128>(r#"{"a":340282366920938463463374607431768211455}"#),
            Ok(u128::MAX)
        );
        assert_eq!(read::<String>(r#"{"a":"é\n","z":1}"#), Ok("é\n".to_owned()));
    }

    #[test]
    fn a_missing_option_is_none_and_anything_else_is_an_error() {
        assert_eq!(read::<Option<u8>>("{}"), Ok(None));
        let error = read::<u8>("{}").expect_err("a field is missing");
        assert_eq!(error.to_string(), "$: missing field `a`");
    }

    #[test]
    fn a_number_that_does_not_fit_says_where_and_why() {
        let error = read::<u64>(r#"{"a":18446744073709551616}"#).expect_err("2^64");
        assert!(error.to_string().starts_with("$.a: "), "{error}");
        let error = read::<u8>(r#"{"a":"x"}"#).expect_err("text for a number");
        assert_eq!(error.to_string(), "$.a: invalid type: string, expected u8");
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused_with_its_path() {
        let error = written(&vec![Some(1.0), None, Some(f64::NAN)]).expect_err("NaN");
        assert_eq!(
            error.to_string(),
            "$.a[2]: NaN is not representable in JSON"
        );
        assert!(written(&vec![Some(1.0), None]).is_ok());
    }

    #[test]
    fn a_payload_that_is_no_object_is_refused() {
        assert!(PayloadReader::new("[]").is_err());
        assert!(PayloadReader::new("null").is_err());
    }
}
