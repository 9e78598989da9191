//! The shape of a payload: what JSON a type reads, as plain data that two builds can compare.
//!
//! It describes stored text and not Rust: a newtype is what it holds, `Box<T>` is `T`, and a
//! renamed field stands under its stored name. Nothing here judges whether one shape reads
//! another's rows; `rules::evolution` does.
//!
//! With the feature `shapes`, `trace` learns the shape of a type from its `Deserialize` alone.

#[cfg(feature = "shapes")]
mod trace;
#[cfg(feature = "shapes")]
mod guide;
#[cfg(feature = "shapes")]
mod samples;
#[cfg(feature = "shapes")]
mod guess;

#[cfg(feature = "shapes")]
pub use trace::trace;

/// What a type reads from JSON.
///
/// No variant is called like a type of the standard library: the compiler would then show that type
/// with its whole path in every message about a program that depends on this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int(Int),
    /// A number of 32 or 64 bits with a fraction.
    Float(u8),
    /// A text of one character.
    Char,
    /// Any text.
    Text,
    /// Bytes, stored as a list of numbers.
    Binary,
    /// `null`.
    Unit,
    /// Any JSON at all, such as `serde_json::Value`.
    Anything,
    /// The inner shape, or `null`.
    Nullable(Box<Shape>),
    /// Any number of items of one shape.
    List(Box<Shape>),
    /// A fixed list of items.
    Tuple(Vec<Shape>),
    /// An object with keys of one shape and values of one shape.
    Entries(Box<Shape>, Box<Shape>),
    /// An object with named fields.
    Struct(Struct),
    /// One of several variants.
    Enum(Enum),
    /// The enclosing struct or enum of this name again.
    Same(String),
    /// Something that could not be looked into.
    Opaque(Opaque),
}

/// A whole number's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    /// Whether it may be negative.
    pub signed: bool,
    /// 8, 16, 32, 64 or 128.
    pub bits: u8,
}

/// An object with named fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// A name, if a [`Shape::Same`] inside refers to it.
    pub name: Option<String>,
    /// Whether fields that it does not know are refused.
    pub closed: bool,
    /// Sorted by name.
    pub fields: Vec<Member>,
}

/// A field of a [`Struct`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The stored name.
    pub name: String,
    /// Other stored names that are read as this field, sorted.
    pub aliases: Vec<String>,
    /// Whether an object without it is refused.
    pub required: bool,
    /// What it holds.
    pub shape: Shape,
}

/// One of several variants, stored as its name or as an object with its name as the only key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// A name, if a [`Shape::Same`] inside refers to it.
    pub name: Option<String>,
    /// Whether an unknown name without content is read too (`#[serde(other)]`).
    pub open: bool,
    /// Sorted by name; an alias of a variant stands here as a variant.
    pub variants: Vec<Variant>,
}

/// A variant of an [`Enum`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The stored name.
    pub name: String,
    /// What it holds: nothing, a value, a [`Shape::Tuple`] or a [`Shape::Struct`].
    pub content: Option<Shape>,
}

/// A type whose own code decides what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// The JSON that it asks for: `text`, `u64`, `any` and so on.
    pub asked: String,
    /// What is known about it: the type's name, or what it said when it was tried.
    pub about: String,
}

/// What is known about one argument of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The argument's shape.
    pub shape: Shape,
    /// Whether a payload without it is read: its type is an option.
    pub optional: bool,
}

impl Member {
    /// Every stored name that is read as this field.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }
}

impl Int {
    /// Whether every number of `other` is one of these too.
    pub fn covers(self, other: Self) -> bool {
        match (self.signed, other.signed) {
            (true, false) => self.bits > other.bits,
            (false, true) => false,
            _ => self.bits >= other.bits,
        }
    }
}

impl std::fmt::Display for Int {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.signed { 'i' } else { 'u' }, self.bits)
    }
}

impl Shape {
    /// The shape in a few words, without what lies inside structs and enums.
    pub fn words(&self) -> String {
        match self {
            Self::Bool => "bool".into(),
            Self::Int(int) => int.to_string(),
            Self::Float(bits) => format!("f{bits}"),
            Self::Char => "char".into(),
            Self::Text => "text".into(),
            Self::Binary => "bytes".into(),
            Self::Unit => "unit".into(),
            Self::Anything => "any".into(),
            Self::Nullable(inner) => format!("option of {}", inner.words()),
            Self::List(item) => format!("list of {}", item.words()),
            Self::Tuple(items) => format!("tuple of {}", items.len()),
            Self::Entries(key, value) => format!("map of {} to {}", key.words(), value.words()),
            Self::Struct(_) => "struct".into(),
            Self::Enum(_) => "enum".into(),
            Self::Same(name) => format!("same as {name}"),
            Self::Opaque(opaque) => format!("opaque {} ({})", opaque.asked, opaque.about),
        }
    }

    /// The shape in one line, with everything inside.
    pub fn told(&self) -> String {
        let list = |shapes: &[Self]| shapes.iter().map(Self::told).collect::<Vec<_>>().join(", ");
        match self {
            Self::Nullable(inner) => format!("option of {}", inner.told()),
            Self::List(item) => format!("list of {}", item.told()),
            Self::Tuple(items) => format!("({})", list(items)),
            Self::Entries(key, value) => format!("map of {} to {}", key.told(), value.told()),
            Self::Struct(object) => {
                let field = |field: &Member| {
                    let names: Vec<&str> = field.names().collect();
                    let mark = if field.required { "" } else { "?" };
                    format!("{}{mark}: {}", names.join("/"), field.shape.told())
                };
                let fields: Vec<String> = object.fields.iter().map(field).collect();
                let closed = if object.closed { "only " } else { "" };
                format!("{closed}{{{}}}", fields.join(", "))
            }
            Self::Enum(choice) => {
                let variant = |variant: &Variant| match &variant.content {
                    Some(content) => format!("{} of {}", variant.name, content.told()),
                    None => variant.name.clone(),
                };
                let mut variants: Vec<String> = choice.variants.iter().map(variant).collect();
                variants.extend(choice.open.then(|| "..".to_owned()));
                format!("one of {}", variants.join(" | "))
            }
            plain => plain.words(),
        }
    }

    /// The shapes directly inside, with the step that leads to each in a JSON path.
    pub fn inside(&self) -> Vec<(String, &Self)> {
        match self {
            Self::Nullable(inner) => vec![(String::new(), &**inner)],
            Self::List(item) => vec![("[]".into(), &**item)],
            Self::Tuple(items) => (0..).map(|at| format!("[{at}]")).zip(items).collect(),
            Self::Entries(key, value) => vec![(".(key)".into(), &**key), (".*".into(), &**value)],
            Self::Struct(object) => {
                let step = |field: &Member| format!(".{}", field.name);
                object.fields.iter().map(|f| (step(f), &f.shape)).collect()
            }
            Self::Enum(choice) => {
                let held = |v: &'_ Variant| v.content.is_some();
                let named = choice.variants.iter().filter(|v| held(v));
                named
                    .filter_map(|v| Some((format!(".{}", v.name), v.content.as_ref()?)))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}
