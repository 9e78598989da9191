//! Judges the keys: every name in them must be a payload field.
//!
//! Only the first name of `order.id` is looked up here; what `order` holds is the compiler's to check. The
//! compiler cannot underline part of a string for us, so a mistake inside one is drawn into the message.

use std::ops::Range;

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Index, LitStr, Member, Token};

use super::argument::last_segment;
use super::chosen::{Chosen, Value};
use super::signature::Signature;
use super::values;
use crate::errors::Errors;
use crate::model::{Arg, Field, Key, KeyPath, Keys};
use crate::parse::Form;
use crate::parse::key::{Hole, KeyText, PathText, key};
use crate::spelling::spell;
use crate::suggest;

/// Reads the four keys. `cache` and `version` are both `Some` or both `None`.
pub(crate) fn keys(chosen: &Chosen<'_>, signature: &Signature, errors: &mut Errors) -> Keys {
    let scope = Scope {
        arguments: &signature.arguments,
        complete: signature.complete,
    };
    let mut read = |name| {
        chosen
            .value(name)
            .and_then(|value| scope.key(value, errors))
    };
    let (dedupe, idempotency, cache) = (read("dedupe"), read("idempotency"), read("cache"));
    let version = chosen
        .value("version")
        .and_then(|value| scope.version(value, errors));
    chosen.demand("cache", "version", errors);
    chosen.demand("version", "cache", errors);
    let (cache, version) = cache.zip(version).unzip();
    Keys {
        dedupe,
        idempotency,
        cache_broken: cache.is_none()
            && (chosen.value("cache").is_some() || chosen.value("version").is_some()),
        cache,
        version,
    }
}

/// Why no name can be right in the key of a job without payload, and what can be written.
const NO_FIELDS: &str = "this job has none. A key for all its jobs is given where one is enqueued, \
                         as in `.dedupe_key(\"nightly\")`";

/// The names a key may use.
struct Scope<'a> {
    arguments: &'a [Arg],
    /// False if some argument has no name: then a missing one proves nothing.
    complete: bool,
}

impl Scope<'_> {
    fn key(&self, value: Value<'_>, errors: &mut Errors) -> Option<Key> {
        if let Form::List(_) = value.written.form {
            return self.token_list(value, errors).map(Key::List);
        }
        let literal = values::text(value, errors)?;
        let text = literal.value();
        let read = match key(&text) {
            Ok(read) => read,
            Err(fault) => return drawn(value, &literal, fault.place, &fault.message, errors),
        };
        match read {
            KeyText::List(paths) => {
                let paths: Vec<_> = paths
                    .iter()
                    .map(|path| self.text_path(value, &literal, path, errors))
                    .collect();
                paths.into_iter().collect::<Option<Vec<_>>>().map(Key::List)
            }
            KeyText::Template(holes) => self.template(value, literal, &holes, errors),
        }
    }

    fn template(
        &self,
        value: Value<'_>,
        literal: LitStr,
        holes: &[Hole],
        errors: &mut Errors,
    ) -> Option<Key> {
        let mut fields: Vec<Ident> = Vec::new();
        let before = errors.count();
        for Hole { name, place } in holes {
            let list = || list_form(value, holes);
            let field = self.field(name).and_then(|field| has_text(field, list));
            match field {
                Ok(field) if fields.contains(&field.ident) => {}
                Ok(field) => fields.push(field.ident.clone()),
                Err(message) if self.complete => {
                    drawn::<Key>(value, &literal, place.clone(), &message, errors);
                }
                Err(_) => return None,
            }
        }
        (errors.count() == before).then_some(Key::Template(literal, fields))
    }

    fn version(&self, value: Value<'_>, errors: &mut Errors) -> Option<KeyPath> {
        let before = errors.count();
        let one = match self.key(value, errors) {
            Some(Key::List(mut paths)) if paths.len() == 1 => paths.pop(),
            _ => None,
        };
        if one.is_none() && errors.count() == before && self.complete {
            let message =
                "`version` takes exactly one payload field, as in `version = \"version\"`";
            errors.at(value.written.blame(), message);
        }
        one
    }

    fn text_path(
        &self,
        value: Value<'_>,
        literal: &LitStr,
        path: &PathText,
        errors: &mut Errors,
    ) -> Option<KeyPath> {
        let (first, rest) = path.segments.split_first()?;
        let found = self.field(first);
        let field = match found.and_then(|field| has_inside(field, rest.first())) {
            Ok(field) => field,
            Err(message) if self.complete => {
                return drawn(value, literal, path.place.clone(), &message, errors);
            }
            Err(_) => return None,
        };
        // The literal's place without its origin: else the compiler proposes edits inside the string.
        let span = Span::call_site().located_at(literal.span());
        let rest = rest.iter().map(|segment| match segment.parse::<u32>() {
            Ok(index) => Member::Unnamed(Index { index, span }),
            Err(_) => Member::Named(any_ident(segment, span)),
        });
        Some(KeyPath {
            field: field.ident.clone(),
            rest: rest.collect(),
            span,
        })
    }

    fn token_list(&self, value: Value<'_>, errors: &mut Errors) -> Option<Vec<KeyPath>> {
        let Form::List(tokens) = &value.written.form else {
            return None;
        };
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        let list = match parser.parse2(tokens.clone()) {
            Ok(list) if !list.is_empty() => list,
            _ => return key_form(value, errors),
        };
        let paths: Vec<_> = list
            .iter()
            .map(|expr| self.token_path(value, expr, errors))
            .collect();
        paths.into_iter().collect()
    }

    fn token_path(&self, value: Value<'_>, expr: &Expr, errors: &mut Errors) -> Option<KeyPath> {
        let Some((first, rest)) = taken_apart(expr) else {
            let name = value.spec.name;
            errors.at(
                expr,
                format!("`{name}` takes fields, as in `{name}(user_id, order.id)`"),
            );
            return None;
        };
        let found = self.field(&first.unraw().to_string());
        let inner = rest.first().map(spell);
        match found.and_then(|field| has_inside(field, inner.as_ref())) {
            Ok(field) => Some(KeyPath {
                field: field.ident.clone(),
                rest,
                span: Span::call_site().located_at(first.span()),
            }),
            Err(message) if self.complete => {
                errors.at(&first, format!("`{}`: {message}", value.spec.name));
                None
            }
            Err(_) => None,
        }
    }

    /// The payload field called `name`, or why there is none.
    fn field(&self, name: &str) -> Result<&Field, String> {
        let fields = || {
            self.arguments.iter().filter_map(|argument| match argument {
                Arg::Payload(field) => Some(field),
                Arg::Injected(_) => None,
            })
        };
        if let Some(found) = fields().find(|field| field.ident.unraw() == name) {
            return Ok(found);
        }
        let names: Vec<String> = fields()
            .map(|field| field.ident.unraw().to_string())
            .collect();
        let names = || names.iter().map(String::as_str);
        let known = match suggest::list(names()) {
            list if list.is_empty() => NO_FIELDS.to_owned(),
            list => format!("payload fields are: {list}"),
        };
        let is_injected = self
            .arguments
            .iter()
            .any(|argument| matches!(argument, Arg::Injected(injected) if injected.name == name));
        if is_injected {
            return Err(format!(
                "`{name}` is injected, so it is no payload field; {known}"
            ));
        }
        let stored =
            |field: &&Field| field.stored == name || field.aliases.iter().any(|a| a == name);
        if let Some(field) = fields().find(stored) {
            return Err(format!(
                "`{name}` is a stored name, and a key takes the names of arguments; write `{}`",
                field.ident.unraw()
            ));
        }
        let hint = suggest::hint(name, names());
        let hint = if hint.is_empty() {
            format!("; {known}")
        } else {
            hint
        };
        Err(format!("no payload field `{name}`{hint}"))
    }
}

/// Refuses an `Option` in a template: the compiler would propose its Debug output, which no key may hold.
fn has_text(field: &Field, list_form: impl FnOnce() -> String) -> Result<&Field, String> {
    let is_option = last_segment(&field.written).is_some_and(|last| last.ident == "Option");
    if is_option {
        return Err(format!(
            "`{}` may be absent, which no template can show; write the list form, `{}`",
            field.ident.unraw(),
            list_form()
        ));
    }
    Ok(field)
}

/// The fields of a template as a list.
fn list_form(value: Value<'_>, holes: &[Hole]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for Hole { name, .. } in holes {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    format!("{} = \"{}\"", value.spec.name, names.join(", "))
}

/// What holds any number of values, so that no path leads to one of them.
const CONTAINERS: [&str; 8] = [
    "Option", "Vec", "VecDeque", "HashMap", "BTreeMap", "HashSet", "BTreeSet", "Result",
];

/// Refuses a path through what visibly has no fields; `inner` is the name behind the field's.
fn has_inside<'f>(field: &'f Field, inner: Option<&String>) -> Result<&'f Field, String> {
    let container = last_segment(&field.written)
        .and_then(|last| CONTAINERS.into_iter().find(|name| last.ident == name));
    match (container, inner) {
        (Some(container), Some(inner)) => {
            let name = field.ident.unraw();
            let article = if container == "Option" { "an" } else { "a" };
            let part = match inner.parse::<u32>() {
                Ok(_) => "that part".to_owned(),
                Err(_) => format!("`{inner}`"),
            };
            Err(format!(
                "a path cannot go through {article} `{container}`, which `{name}` is; take {part} as an \
                 argument of its own"
            ))
        }
        _ => Ok(field),
    }
}

fn key_form<T>(value: Value<'_>, errors: &mut Errors) -> Option<T> {
    let name = value.spec.name;
    errors.at(
        value.written.blame(),
        format!("`{name}` takes fields, as in `{name}(user_id, order.id)`"),
    );
    None
}

/// `order.id` as `order` and `[id]`.
fn taken_apart(expr: &Expr) -> Option<(Ident, Vec<Member>)> {
    match expr {
        Expr::Group(group) => taken_apart(&group.expr),
        Expr::Path(path) => Some((path.path.get_ident()?.clone(), Vec::new())),
        Expr::Field(access) => {
            let (first, mut rest) = taken_apart(&access.base)?;
            rest.push(access.member.clone());
            Some((first, rest))
        }
        _ => None,
    }
}

fn any_ident(name: &str, span: Span) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(_) => Ident::new(name, span),
        Err(_) => Ident::new_raw(name, span),
    }
}

/// Adds an error at the whole literal, with a caret under the part at fault.
fn drawn<T>(
    value: Value<'_>,
    literal: &LitStr,
    place: Range<usize>,
    message: &str,
    errors: &mut Errors,
) -> Option<T> {
    let text = literal.value();
    let shown = |part: &str| part.escape_debug().to_string();
    let before = shown(&text[..place.start]).chars().count();
    let width = shown(&text[place]).chars().count().max(1);
    let name = value.spec.name;
    errors.at(
        literal,
        format!(
            "`{name}`: {message}\n\"{}\"\n{}{}",
            shown(&text),
            " ".repeat(before + 1),
            "^".repeat(width),
        ),
    );
    None
}
