//! Finds a number that JSON cannot hold inside a value, with its path.
//!
//! serde_json writes NaN and infinities as `null`; the value that comes back would be another
//! one, or none. This walks a value through serde and keeps nothing but the path.

use serde::ser::{self, Serialize, Serializer};

use crate::error::PayloadError;

/// Refuses a value that holds a number which is not finite.
pub(super) fn check<T: Serialize + ?Sized>(
    name: &'static str,
    value: &T,
) -> Result<(), PayloadError> {
    let mut path = format!("$.{name}");
    match value.serialize(Walk { path: &mut path }) {
        Err(Found::NotFinite(what)) => Err(PayloadError {
            path,
            rule: format!("{what} is not representable in JSON"),
        }),
        // Any other fault is the serialiser's to report, and it has passed already.
        Ok(()) | Err(Found::Other) => Ok(()),
    }
}

struct Walk<'a> {
    path: &'a mut String,
}

#[derive(Debug)]
enum Found {
    NotFinite(f64),
    Other,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number that is not finite")
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self::Other
    }
}

/// Walks one level: the place of each child is pushed on the path, and popped if nothing is found.
struct Children<'a> {
    path: &'a mut String,
    index: usize,
    key: String,
}

impl Children<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let place = format!("[{}]", self.index);
        self.index += 1;
        self.at(&place, value)
    }

    fn named<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Found> {
        self.at(&format!(".{name}"), value)
    }

    fn at<T: Serialize + ?Sized>(&mut self, place: &str, value: &T) -> Result<(), Found> {
        let len = self.path.len();
        self.path.push_str(place);
        value.serialize(Walk { path: self.path })?;
        self.path.truncate(len);
        Ok(())
    }
}

impl<'a> Walk<'a> {
    fn children(self) -> Children<'a> {
        Children {
            path: self.path,
            index: 0,
            key: String::new(),
        }
    }
}

macro_rules! leaves {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Result<(), Found> { Ok(()) })*
    };
}

impl<'a> Serializer for Walk<'a> {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Children<'a>;
    type SerializeTuple = Children<'a>;
    type SerializeTupleStruct = Children<'a>;
    type SerializeTupleVariant = Children<'a>;
    type SerializeMap = Children<'a>;
    type SerializeStruct = Children<'a>;
    type SerializeStructVariant = Children<'a>;

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
            Err(Found::NotFinite(value))
        }
    }

    fn serialize_none(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &str, _: u32, _: &str) -> Result<(), Found> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &str,
        value: &T,
    ) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &str,
        _: u32,
        variant: &str,
        value: &T,
    ) -> Result<(), Found> {
        self.children().named(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Children<'a>, Found> {
        Ok(self.children())
    }

    fn serialize_tuple(self, _: usize) -> Result<Children<'a>, Found> {
        Ok(self.children())
    }

    fn serialize_tuple_struct(self, _: &str, _: usize) -> Result<Children<'a>, Found> {
        Ok(self.children())
    }

    fn serialize_tuple_variant(
        self,
        _: &str,
        _: u32,
        variant: &str,
        _: usize,
    ) -> Result<Children<'a>, Found> {
        self.path.push('.');
        self.path.push_str(variant);
        Ok(self.children())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Children<'a>, Found> {
        Ok(self.children())
    }

    fn serialize_struct(self, _: &str, _: usize) -> Result<Children<'a>, Found> {
        Ok(self.children())
    }

    fn serialize_struct_variant(
        self,
        _: &str,
        _: u32,
        variant: &str,
        _: usize,
    ) -> Result<Children<'a>, Found> {
        self.path.push('.');
        self.path.push_str(variant);
        Ok(self.children())
    }
}

macro_rules! item_walks {
    ($($trait:ident :: $method:ident),*) => {
        $(impl ser::$trait for Children<'_> {
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
        $(impl ser::$trait for Children<'_> {
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

impl ser::SerializeMap for Children<'_> {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Found> {
        self.key = serde_json::to_string(key)
            .map_err(|_| Found::Other)?
            .replace('"', "");
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let key = std::mem::take(&mut self.key);
        self.named(&key, value)
    }

    fn end(self) -> Result<(), Found> {
        Ok(())
    }
}
