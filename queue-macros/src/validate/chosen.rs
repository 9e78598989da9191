//! Matches the options that were written with the options that exist.
//!
//! After this, every option is known, supported and given at most once (unless it may repeat).

use crate::errors::Errors;
use crate::parse::Written;
use crate::parse::table::{OPTIONS, Spec, Status, foreign};
use crate::suggest;

/// One known option with what was written for it.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) spec: &'static Spec,
    pub(crate) written: &'a Written,
}

/// The known options of one attribute.
pub(crate) struct Chosen<'a> {
    values: Vec<Value<'a>>,
}

impl<'a> Chosen<'a> {
    /// Keeps the known options, and reports the unknown, the reserved and the repeated ones.
    pub(crate) fn new(written: &'a [Written], errors: &mut Errors) -> Self {
        let mut values: Vec<Value<'a>> = Vec::new();
        for option in written {
            let name = option.name();
            let Some(spec) = OPTIONS.iter().find(|spec| spec.name == name) else {
                errors.at(&option.key, unknown(&name));
                continue;
            };
            let repeated = values.iter().any(|value| value.spec.name == name);
            match spec.status {
                Status::Reserved => {
                    errors.at(
                        &option.key,
                        format!("`{name}` is reserved for a later version"),
                    );
                }
                Status::Once if repeated => {
                    errors.at(
                        &option.key,
                        format!("option `{name}` is given twice; keep one of them"),
                    );
                }
                Status::Once | Status::Repeatable => values.push(Value {
                    spec,
                    written: option,
                }),
            }
        }
        Self { values }
    }

    /// Everything that was written, in that order.
    pub(crate) fn values(&self) -> impl Iterator<Item = Value<'a>> {
        self.values.iter().copied()
    }

    /// What was written for the option `name`, if anything.
    pub(crate) fn value(&self, name: &str) -> Option<Value<'a>> {
        self.all(name).next()
    }

    /// Everything that was written for a repeatable option.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = Value<'a>> {
        self.values
            .iter()
            .copied()
            .filter(move |value| value.spec.name == name)
    }

    /// Reports `name` if it is given while `partner` is not.
    pub(crate) fn demand(&self, name: &str, partner: &str, errors: &mut Errors) {
        if let (Some(value), None) = (self.value(name), self.value(partner)) {
            let example = OPTIONS
                .iter()
                .find(|spec| spec.name == partner)
                .map_or("", |spec| spec.example);
            errors.at(
                &value.written.key,
                format!("`{name}` needs `{partner}` beside it, as in `{example}`"),
            );
        }
    }
}

fn unknown(name: &str) -> String {
    let usable = OPTIONS
        .iter()
        .filter(|spec| spec.status != Status::Reserved);
    let names = usable.map(|spec| spec.name);
    if let Some(instead) = foreign(name) {
        return format!("unknown `#[job]` option `{name}`; {instead}");
    }
    let hint = suggest::hint(name, names.clone());
    if hint.is_empty() {
        return format!(
            "unknown `#[job]` option `{name}`; the options are {}",
            suggest::list(names)
        );
    }
    format!("unknown `#[job]` option `{name}`{hint}")
}
