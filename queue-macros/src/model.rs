//! What a valid job is: everything the generated code depends on, and nothing that could be wrong.
//!
//! `validate` builds it, `expand` reads it.

use std::time::Duration;

use proc_macro2::{Ident, Span};
use syn::{Attribute, LitStr, Member, Path, Type, Visibility};

/// One job.
pub(crate) struct Job {
    /// The path to the runtime crate.
    pub(crate) runtime: Path,
    pub(crate) function: Ident,
    pub(crate) vis: Visibility,
    /// The `#[cfg]`s under the attribute, which every generated item shares.
    pub(crate) cfgs: Vec<Attribute>,
    /// The name of the payload struct.
    pub(crate) payload: Ident,
    pub(crate) derives: Vec<Path>,
    /// In the order of the call.
    pub(crate) arguments: Vec<Arg>,
    /// `None` for a function without a `->`.
    pub(crate) output: Option<Type>,
    /// The type of a success is called `Refreshed`.
    pub(crate) returns_refreshed: bool,
    pub(crate) name: String,
    pub(crate) policy: Policy,
    pub(crate) keys: Keys,
    pub(crate) retry_if: Option<Path>,
    pub(crate) upcast: Option<Path>,
}

/// An argument of the handler.
pub(crate) enum Arg {
    Payload(Field),
    Injected(Injected),
}

/// An argument that is stored with the job.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    /// The type of the argument as written.
    pub(crate) written: Type,
    /// The type of the struct's field if it is another one: `String` for `&str`.
    pub(crate) is_str: bool,
    pub(crate) docs: Vec<Attribute>,
    /// The key in the stored payload.
    pub(crate) stored: String,
    /// Keys that are read when `stored` is absent.
    pub(crate) aliases: Vec<String>,
    pub(crate) default: Option<FieldDefault>,
}

/// What a field holds when the stored payload lacks it.
pub(crate) enum FieldDefault {
    Trait,
    Function(Path),
}

/// An argument that the worker supplies.
pub(crate) struct Injected {
    /// The argument's name, or `_`.
    pub(crate) name: String,
    pub(crate) ty: Type,
}

/// The settings of a job that are plain data; `None` leaves the runtime's default.
#[derive(Default)]
pub(crate) struct Policy {
    pub(crate) aliases: Vec<String>,
    pub(crate) queue: Option<String>,
    pub(crate) priority: Option<i16>,
    pub(crate) retries: Option<u32>,
    pub(crate) timeout: Option<Timeout>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) dedupe_until: Option<DedupeUntil>,
    pub(crate) on_duplicate: Option<OnDuplicate>,
    pub(crate) idempotency_for: Option<Duration>,
    pub(crate) schema: Option<u32>,
}

/// How long one attempt may run.
pub(crate) enum Timeout {
    Never,
    After(Duration),
}

/// How long to wait before the next attempt.
#[derive(Clone, Copy)]
pub(crate) enum Backoff {
    Fixed {
        delay: Duration,
        jitter_percent: u8,
    },
    Exponential {
        base: Duration,
        max: Duration,
        jitter_percent: u8,
    },
}

/// How long a dedupe key is taken.
pub(crate) enum DedupeUntil {
    Finished,
    Started,
    Window(Duration),
}

/// What happens to an enqueue whose dedupe key is taken.
#[derive(Clone, Copy)]
pub(crate) enum OnDuplicate {
    Keep,
    Replace,
    Rerun,
}

/// The keys that are computed from a payload. `cache` and `version` are both given or both absent.
#[derive(Default)]
pub(crate) struct Keys {
    pub(crate) dedupe: Option<Key>,
    pub(crate) idempotency: Option<Key>,
    pub(crate) cache: Option<Key>,
    pub(crate) version: Option<KeyPath>,
    /// A `cache` or its `version` was asked for and is wrong: then nothing is known about what the job returns.
    pub(crate) cache_broken: bool,
}

impl Keys {
    /// The payload fields that any of the keys names.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Ident> {
        let Self {
            dedupe,
            idempotency,
            cache,
            version,
            ..
        } = self;
        let keys = [dedupe, idempotency, cache].into_iter().flatten();
        let version = version.iter().map(|path| &path.field);
        keys.flat_map(Key::fields).chain(version)
    }
}

impl Key {
    fn fields(&self) -> Vec<&Ident> {
        match self {
            Self::List(paths) => paths.iter().map(|path| &path.field).collect(),
            Self::Template(_, fields) => fields.iter().collect(),
        }
    }
}

/// A key whose first names are fields of the payload.
pub(crate) enum Key {
    List(Vec<KeyPath>),
    /// The literal as written, and the fields it names (each once).
    Template(LitStr, Vec<Ident>),
}

/// A field, or a field of a field.
pub(crate) struct KeyPath {
    pub(crate) field: Ident,
    pub(crate) rest: Vec<Member>,
    /// Where the compiler's own errors about the value shall point.
    pub(crate) span: Span,
}

impl Job {
    /// The arguments that are stored with the job.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.arguments.iter().filter_map(|argument| match argument {
            Arg::Payload(field) => Some(field),
            Arg::Injected(_) => None,
        })
    }

    /// The arguments that the worker supplies.
    pub(crate) fn injected(&self) -> impl Iterator<Item = &Injected> {
        self.arguments.iter().filter_map(|argument| match argument {
            Arg::Injected(injected) => Some(injected),
            Arg::Payload(_) => None,
        })
    }
}
