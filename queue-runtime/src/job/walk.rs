//! Looks through a value, before it is written, for what JSON cannot carry or nobody should nest.
//!
//! serde_json writes NaN and infinities as `null`, so another value would come back; and it
//! follows a value as deep as it goes, so a deep one would use up the thread's stack. This walks
//! a value through serde no deeper than allowed, and names the place of what it finds.

use serde::ser::{self, Serialize, Serializer};

use crate::error::PayloadError;

/// The deepest nesting of a payload; the payload object itself is level 1.
pub const PAYLOAD_DEPTH_MAX: usize = 64;

/// The rule that a deeper payload breaks.
pub(crate) const TOO_DEEP: &str = "must be nested at most 64 levels deep";

/// Refuses a field that is nested too deeply or holds a number that is not finite.
pub(super) fn check<T: Serialize + ?Sized>(name: &str, value: &T) -> Result<(), PayloadError> {
    // The payload object itself is the first level.
    match value.serialize(Walk {
        level: 1,
        wrappers: 0,
    }) {
        Ok(()) => Ok(()),
        Err(Found {
            what: What::Other, ..
        }) => {
            // The value's own fault, which its serialiser will put in its own words.
            Ok(())
        }
        Err(found) => Err(PayloadError {
            path: found.path(name),
            rule: found.rule(),
        }),
    }
}

/// One level of a value.
#[derive(Clone, Copy)]
struct Walk {
    level: usize,
    /// Wrappers since the last level: options and newtypes nest without a level in JSON.
    wrappers: usize,
}

/// The most wrappers around one value.
const WRAPPERS_MAX: usize = 16;

/// What was found, and the way to it from the inside out; nothing is built while nothing is found.
#[derive(Debug)]
struct Found {
    what: What,
    way: Vec<String>,
}

#[derive(Debug)]
enum What {
    NotFinite(f64),
    TooDeep,
    Other,
}

impl Found {
    fn new(what: What) -> Self {
        Self {
            what,
            way: Vec::new(),
        }
    }

    fn inside(mut self, step: impl FnOnce() -> String) -> Self {
        self.way.push(step());
        self
    }

    fn path(&self, name: &str) -> String {
        let steps = self.way.iter().rev().map(String::as_str);
        std::iter::once("$.")
            .chain(std::iter::once(name))
            .chain(steps)
            .collect()
    }

    fn rule(&self) -> String {
        match self.what {
            What::NotFinite(number) => format!("{number} is not representable in JSON"),
            What::TooDeep => TOO_DEEP.to_owned(),
            What::Other => String::new(),
        }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rule())
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self::new(What::Other)
    }
}

/// The children of one container, each one level further in.
struct Children {
    inner: Walk,
    index: usize,
    key: String,
    /// The variant that the container belongs to, if any.
    variant: Option<&'static str>,
}

impl Walk {
    /// Steps into a container.
    fn enter(self) -> Result<Children, Found> {
        if self.level >= PAYLOAD_DEPTH_MAX {
            return Err(Found::new(What::TooDeep));
        }
        let inner = Self {
            level: self.level + 1,
            wrappers: 0,
        };
        Ok(Children {
            inner,
            index: 0,
            key: String::new(),
            variant: None,
        })
    }

    /// Steps through a wrapper, which adds no level in JSON but uses the stack all the same.
    fn unwrap(self) -> Result<Self, Found> {
        match self.wrappers < WRAPPERS_MAX {
            true => Ok(Self {
                wrappers: self.wrappers + 1,
                ..self
            }),
            false => Err(Found::new(What::TooDeep)),
        }
    }

    /// Steps into a variant, which JSON writes as an object around its container.
    fn enter_variant(self, variant: &'static str) -> Result<Children, Found> {
        let around = self.enter()?;
        Ok(Children {
            variant: Some(variant),
            ..around.inner.enter()?
        })
    }
}

impl Children {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let index = self.index;
        self.index += 1;
        self.child(value, || format!("[{index}]"))
    }

    fn named<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<(), Found> {
        self.child(value, || format!(".{name}"))
    }

    fn child<T: Serialize + ?Sized>(
        &self,
        value: &T,
        step: impl FnOnce() -> String,
    ) -> Result<(), Found> {
        value.serialize(self.inner).map_err(|found| {
            let found = found.inside(step);
            match self.variant {
                Some(variant) => found.inside(|| format!(".{variant}")),
                None => found,
            }
        })
    }
}

macro_rules! leaves {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Result<(), Found> { Ok(()) })*
    };
}

impl Serializer for Walk {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Children;
    type SerializeTuple = Children;
    type SerializeTupleStruct = Children;
    type SerializeTupleVariant = Children;
    type SerializeMap = Children;
    type SerializeStruct = Children;
    type SerializeStructVariant = Children;

    leaves! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_i128: i128, serialize_u8: u8, serialize_u16: u16,
        serialize_u32: u32, serialize_u64: u64, serialize_u128: u128, serialize_char: char,
        serialize_str: &str, serialize_bytes: &[u8], serialize_unit_struct: &'static str
    }

    fn serialize_f32(self, value: f32) -> Result<(), Found> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Found> {
        if value.is_finite() {
            Ok(())
        } else {
            Err(Found::new(What::NotFinite(value)))
        }
    }

    fn serialize_none(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Found> {
        value.serialize(self.unwrap()?)
    }

    fn serialize_unit_variant(self, _: &str, _: u32, _: &str) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &str,
        value: &T,
    ) -> Result<(), Found> {
        value.serialize(self.unwrap()?)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &str,
        _: u32,
        variant: &str,
        value: &T,
    ) -> Result<(), Found> {
        self.enter()?.named(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Children, Found> {
        self.enter()
    }

    fn serialize_tuple(self, _: usize) -> Result<Children, Found> {
        self.enter()
    }

    fn serialize_tuple_struct(self, _: &str, _: usize) -> Result<Children, Found> {
        self.enter()
    }

    fn serialize_tuple_variant(
        self,
        _: &str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Children, Found> {
        self.enter_variant(variant)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Children, Found> {
        self.enter()
    }

    fn serialize_struct(self, _: &str, _: usize) -> Result<Children, Found> {
        self.enter()
    }

    fn serialize_struct_variant(
        self,
        _: &str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Children, Found> {
        self.enter_variant(variant)
    }
}

macro_rules! item_walks {
    ($($trait:ident :: $method:ident),*) => {
        $(impl ser::$trait for Children {
            type Ok = ();
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
                self.item(value)
            }

            fn end(self) -> Result<(), Found> {
                Ok(())
            }
        })*
    };
}

item_walks! {
    SerializeSeq::serialize_element, SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field, SerializeTupleVariant::serialize_field
}

macro_rules! named_walks {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Children {
            type Ok = ();
            type Error = Found;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Found> {
                self.named(name, value)
            }

            fn end(self) -> Result<(), Found> {
                Ok(())
            }
        })*
    };
}

named_walks! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for Children {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Found> {
        // Only for the path; a key that is no text is serde_json's to refuse.
        self.key = serde_json::to_string(key)
            .unwrap_or_default()
            .replace('"', "");
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        self.named(&self.key, value)
    }

    fn end(self) -> Result<(), Found> {
        Ok(())
    }
}
