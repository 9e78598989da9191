//! A deserializer that walks to one place inside a type and asks there what is wanted, or feeds
//! JSON there and sees whether it is taken.
//!
//! A type is asked again from its root for each place. So no value has to be made up on the way: a
//! struct is given the wanted field first, and the run ends there with an error. Only items of a
//! tuple need their predecessors.

use std::any::type_name;
use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// One step from a value to a value inside it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A field of a struct.
    Field(&'static str),
    /// What an option, a newtype or a variant holds.
    Inside,
    /// The item behind those given, each as JSON.
    Item(Vec<String>),
    /// The key of a map.
    Key,
    /// The value of a map under this key, as JSON.
    Value(String),
    /// A variant of an enum.
    Variant(&'static str),
}

/// What is done at the end of the way.
#[derive(Clone, Copy)]
pub(super) enum End<'a> {
    /// Note what is asked for.
    Ask,
    /// Give this JSON.
    Feed(&'a str),
}

/// What a type asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Bool,
    Int(super::Int),
    Float(u8),
    Char,
    Text,
    Bytes,
    Unit,
    Option,
    Newtype(&'static str),
    Seq,
    Tuple(usize),
    Map,
    Struct(&'static str, &'static [&'static str]),
    Enum(&'static str, &'static [&'static str]),
    Identifier,
    Ignored,
    Any,
}

/// An answer to [`End::Ask`].
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    /// The type of the visitor: the same type asks with the same one.
    pub(super) visitor: &'static str,
    /// The type whose field or item this is, as far as serde shows it.
    pub(super) owner: &'static str,
    /// What the visitor says that it expects.
    pub(super) expects: String,
}

/// What came of one run.
pub(super) struct Notes {
    pub(super) asked: RefCell<Option<Asked>>,
    /// Whether the fed JSON was taken, and what was said if not.
    pub(super) fed: RefCell<Option<Result<(), String>>>,
    owner: Cell<&'static str>,
}

impl Notes {
    pub(super) fn new(root: &'static str) -> Self {
        Self {
            asked: RefCell::new(None),
            fed: RefCell::new(None),
            owner: Cell::new(root),
        }
    }
}

/// Ends a run.
#[derive(Debug)]
pub(super) struct Stop(pub(super) String);

impl Stop {
    /// The way is at its end.
    fn here() -> Self {
        Self("the way ends here".into())
    }

    /// The type asked for something that does not lead on.
    fn astray() -> Self {
        Self("no way leads there".into())
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stop {}

impl serde::de::Error for Stop {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// The deserializer, and what it hands to visitors.
#[derive(Clone, Copy)]
pub(super) struct Guide<'a> {
    pub(super) steps: &'a [Step],
    pub(super) end: End<'a>,
    pub(super) notes: &'a Notes,
}

impl<'a> Guide<'a> {
    fn asked<V>(self, kind: Kind, expects: String) -> Stop {
        let asked = Asked {
            kind,
            visitor: type_name::<V>(),
            owner: self.notes.owner.get(),
            expects,
        };
        self.notes.asked.replace(Some(asked));
        Stop::here()
    }

    /// Gives a value inside what it is led to, and ends the run with what came of it.
    fn give<S: DeserializeSeed<'a>, T>(self, seed: S) -> Result<T, Stop> {
        self.notes.owner.set(type_name::<S>());
        let taken = seed.deserialize(self);
        Err(self.taken(taken.map(drop)))
    }

    fn taken(self, taken: Result<(), Stop>) -> Stop {
        if matches!(self.end, End::Feed(_)) && self.notes.fed.borrow().is_none() {
            let said = taken.map_err(|stop| stop.0);
            self.notes.fed.replace(Some(said));
        }
        Stop::here()
    }

    fn next(self) -> Option<(&'a Step, Self)> {
        let (step, steps) = self.steps.split_first()?;
        Some((step, Self { steps, ..self }))
    }
}

fn expects(visitor: &dyn Expected) -> String {
    visitor.to_string()
}

/// Hands a made-up value to a seed.
fn made_up<'a, S: DeserializeSeed<'a>>(seed: S, json: &'a str) -> Result<S::Value, Stop> {
    let mut json = serde_json::Deserializer::from_str(json);
    seed.deserialize(&mut json).map_err(Stop::custom)
}

/// A method that ends the way, or leads on by the given steps.
macro_rules! asks {
    ($($method:ident($($name:ident: $type:ty),*) => $kind:expr $(, $step:pat => $on:expr)*;)*) => {$(
        fn $method<V: Visitor<'a>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Stop> {
            match (self.next(), self.end) {
                $((Some(($step, guide)), _) => $on(guide, visitor),)*
                (Some(_), _) => Err(Stop::astray()),
                (None, End::Ask) => Err(self.asked::<V>($kind, expects(&visitor))),
                (None, End::Feed(json)) => serde_json::Deserializer::from_str(json)
                    .$method($($name,)* visitor)
                    .map_err(Stop::custom),
            }
        }
    )*};
}

const fn int(signed: bool, bits: u8) -> Kind {
    Kind::Int(super::Int { signed, bits })
}

impl<'a> Deserializer<'a> for Guide<'a> {
    type Error = Stop;

    asks! {
        deserialize_any() => Kind::Any;
        deserialize_bool() => Kind::Bool;
        deserialize_i8() => int(true, 8);
        deserialize_i16() => int(true, 16);
        deserialize_i32() => int(true, 32);
        deserialize_i64() => int(true, 64);
        deserialize_i128() => int(true, 128);
        deserialize_u8() => int(false, 8);
        deserialize_u16() => int(false, 16);
        deserialize_u32() => int(false, 32);
        deserialize_u64() => int(false, 64);
        deserialize_u128() => int(false, 128);
        deserialize_f32() => Kind::Float(32);
        deserialize_f64() => Kind::Float(64);
        deserialize_char() => Kind::Char;
        deserialize_str() => Kind::Text;
        deserialize_string() => Kind::Text;
        deserialize_bytes() => Kind::Bytes;
        deserialize_byte_buf() => Kind::Bytes;
        deserialize_option() => Kind::Option,
            Step::Inside => |guide, visitor: V| visitor.visit_some(guide);
        deserialize_unit() => Kind::Unit;
        deserialize_unit_struct(name: &'static str) => Kind::Unit;
        deserialize_newtype_struct(name: &'static str) => Kind::Newtype(name),
            Step::Inside => |guide, visitor: V| visitor.visit_newtype_struct(guide);
        deserialize_seq() => Kind::Seq,
            Step::Item(before) => |guide, visitor: V| visitor.visit_seq(Items::new(before, guide));
        deserialize_tuple(len: usize) => Kind::Tuple(len),
            Step::Item(before) => |guide, visitor: V| visitor.visit_seq(Items::new(before, guide));
        deserialize_tuple_struct(name: &'static str, len: usize) => Kind::Tuple(len),
            Step::Item(before) => |guide, visitor: V| visitor.visit_seq(Items::new(before, guide));
        deserialize_map() => Kind::Map,
            Step::Key => |guide, visitor: V| visitor.visit_map(Entry::new(Way::On, guide)),
            Step::Value(key) => |guide, visitor: V|
                visitor.visit_map(Entry::new(Way::Json(key), guide));
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
            => Kind::Struct(name, fields),
            Step::Field(field) => |guide, visitor: V|
                visitor.visit_map(Entry::new(Way::Name(field), guide));
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
            => Kind::Enum(name, variants),
            Step::Variant(name) => |guide, visitor: V| visitor.visit_enum(Choice { name, guide });
        deserialize_identifier() => Kind::Identifier;
        deserialize_ignored_any() => Kind::Ignored;
    }
}

struct Items<'a> {
    before: &'a [String],
    guide: Guide<'a>,
    /// A type that goes on after an error would otherwise be answered with errors for ever.
    is_over: bool,
}

impl<'a> Items<'a> {
    fn new(before: &'a [String], guide: Guide<'a>) -> Self {
        Self {
            before,
            guide,
            is_over: false,
        }
    }
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = Stop;

    fn next_element_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Stop> {
        match self.before.split_first() {
            None if self.is_over => Ok(None),
            None => {
                self.is_over = true;
                self.guide.give(seed)
            }
            Some((json, rest)) => {
                self.before = rest;
                made_up(seed, json).map(Some)
            }
        }
    }
}

/// How a map's only key is given.
enum Way<'a> {
    /// It is where the way leads.
    On,
    Json(&'a str),
    Name(&'a str),
}

struct Entry<'a> {
    key: Way<'a>,
    guide: Guide<'a>,
    /// As in [`Items`].
    is_over: bool,
}

impl<'a> Entry<'a> {
    fn new(key: Way<'a>, guide: Guide<'a>) -> Self {
        Self {
            key,
            guide,
            is_over: false,
        }
    }
}

impl<'a> MapAccess<'a> for Entry<'a> {
    type Error = Stop;

    fn next_key_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, Stop> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(None);
        }
        match self.key {
            Way::On => self.guide.give(seed),
            Way::Json(json) => made_up(seed, json).map(Some),
            Way::Name(name) => seed.deserialize(StrDeserializer::new(name)).map(Some),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, Stop> {
        self.guide.give(seed)
    }
}

struct Choice<'a> {
    name: &'static str,
    guide: Guide<'a>,
}

impl<'a> EnumAccess<'a> for Choice<'a> {
    type Error = Stop;
    type Variant = Guide<'a>;

    fn variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<(S::Value, Guide<'a>), Stop> {
        let variant = seed.deserialize(StrDeserializer::new(self.name))?;
        Ok((variant, self.guide))
    }
}

impl<'a> VariantAccess<'a> for Guide<'a> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        Err(self.asked::<()>(Kind::Unit, String::new()))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, Stop> {
        match self.next() {
            Some((Step::Inside, guide)) => guide.give(seed),
            _ => Err(self.asked::<S>(Kind::Newtype(""), String::new())),
        }
    }

    fn tuple_variant<V: Visitor<'a>>(self, len: usize, visitor: V) -> Result<V::Value, Stop> {
        match self.next() {
            Some((Step::Item(before), guide)) => visitor.visit_seq(Items::new(before, guide)),
            _ => Err(self.asked::<V>(Kind::Tuple(len), String::new())),
        }
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        match self.next() {
            Some((Step::Field(field), guide)) => {
                visitor.visit_map(Entry::new(Way::Name(field), guide))
            }
            _ => Err(self.asked::<V>(Kind::Struct("", fields), String::new())),
        }
    }
}
