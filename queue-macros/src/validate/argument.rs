//! Judges one argument: is it payload or injected, and can its type be stored.
//!
//! An argument is injected if its type is `JobContext` or `Data<..>`, or if it is marked `#[inject]`; every
//! other argument is payload. A wrong guess (an alias of `Data`, say) is found by the compiler, since both
//! kinds carry a trait bound.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Pat, PathArguments, PathSegment, Type, TypeReference};

use super::field_options;
use crate::errors::Errors;
use crate::model::{Arg, Field, Injected};
use crate::parse::Argument;
use crate::parse::function::peel;
use crate::spelling::spell;

/// What is known of one argument.
pub(crate) struct Read {
    /// `None` if it has no name that a key could use.
    pub(crate) arg: Option<Arg>,
    /// Whether a job can have it. If not, its name is still good for judging the keys.
    pub(crate) usable: bool,
}

/// Reads one argument, and reports why no job can have it.
pub(crate) fn argument(written: &Argument, lifetimes_reported: bool, errors: &mut Errors) -> Read {
    if let Some(cfg) = &written.cfg {
        errors.at(
            cfg,
            "the payload would change with the build; put the `#[cfg]` on two whole functions instead",
        );
    }
    if written.inject.is_some() || is_injected_type(&written.ty) {
        injected(written, errors)
    } else {
        payload(written, lifetimes_reported, errors)
    }
}

/// The last segment of a type that is a plain path.
pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match peel(ty) {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

fn is_injected_type(ty: &Type) -> bool {
    if let Type::Reference(reference) = peel(ty) {
        // A slip that is answered better as what it means than as payload.
        return is_injected_type(&reference.elem);
    }
    last_segment(ty).is_some_and(|last| match &last.arguments {
        PathArguments::None => last.ident == "JobContext",
        PathArguments::AngleBracketed(_) => last.ident == "Data",
        PathArguments::Parenthesized(_) => false,
    })
}

fn injected(written: &Argument, errors: &mut Errors) -> Read {
    for (option, name) in field_options::all(written) {
        errors.at(
            option,
            format!(
                "`#[{name}(..)]` has no effect on an injected argument, which is not stored; remove it"
            ),
        );
    }
    let name = match &written.pat {
        Pat::Wild(_) => Some("_".to_owned()),
        other => plain_name(other, errors).map(|name| name.unraw().to_string()),
    };
    let by_value = match &written.ty {
        Type::Reference(reference) => {
            let owned = spell(&*reference.elem);
            errors.at(
                reference,
                format!("an injected argument is handed over by value; write `{owned}`"),
            );
            false
        }
        Type::ImplTrait(opaque) => one_concrete_type::<()>(opaque, errors).is_some(),
        _ => true,
    };
    let ty = written.ty.clone();
    let arg = name.map(|name| Arg::Injected(Injected { name, ty }));
    Read {
        usable: by_value && arg.is_some(),
        arg,
    }
}

fn payload(written: &Argument, lifetimes_reported: bool, errors: &mut Errors) -> Read {
    let ident = match &written.pat {
        Pat::Wild(wild) => {
            errors.at(
                wild,
                "a payload argument needs a name, under which it is stored; write `name: T`",
            );
            None
        }
        other => plain_name(other, errors),
    };
    let is_str = storable(&written.ty, lifetimes_reported, errors);
    let arg = ident.map(|ident| {
        let mut field = Field {
            stored: ident.unraw().to_string(),
            ident,
            written: written.ty.clone(),
            is_str: is_str.unwrap_or_default(),
            docs: written.docs.clone(),
            aliases: Vec::new(),
            default: None,
        };
        field_options::read(&mut field, written, errors);
        Arg::Payload(field)
    });
    Read {
        usable: is_str.is_some() && arg.is_some(),
        arg,
    }
}

/// The name of `name: T` or `mut name: T`.
fn plain_name(pat: &Pat, errors: &mut Errors) -> Option<Ident> {
    match pat {
        Pat::Ident(plain) if plain.by_ref.is_none() && plain.subpat.is_none() => {
            Some(plain.ident.clone())
        }
        other => {
            errors.at(
                other,
                "an argument of a job is a plain name; take it apart in the body",
            );
            None
        }
    }
}

/// Whether the type is `&str` (stored as `String`), or `None` if a payload cannot hold it.
fn storable(ty: &Type, lifetimes_reported: bool, errors: &mut Errors) -> Option<bool> {
    match ty {
        Type::Reference(reference) => borrowed(reference, lifetimes_reported, errors),
        Type::ImplTrait(opaque) => one_concrete_type(opaque, errors),
        other => match borrow_inside(other.to_token_stream()) {
            // An undeclared lifetime is the compiler's to report, a declared one was reported.
            Some(Borrow::Named) => None,
            Some(Borrow::Anonymous) => {
                errors.at(
                    other,
                    format!(
                        "a payload is stored, so its types own what they hold; `{}` borrows",
                        spell(other)
                    ),
                );
                None
            }
            Some(Borrow::Opaque) => one_concrete_type(other, errors),
            None => Some(false),
        },
    }
}

fn one_concrete_type<T>(place: &impl ToTokens, errors: &mut Errors) -> Option<T> {
    errors.at(place, format!(
        "a job is stored and called later, so an argument has one concrete type, not `{}`; write the type",
        spell(place)
    ));
    None
}

fn borrowed(
    reference: &TypeReference,
    lifetimes_reported: bool,
    errors: &mut Errors,
) -> Option<bool> {
    let inner = peel(&reference.elem);
    let is_str = last_segment(inner).is_some_and(|last| last.ident == "str");
    match &reference.lifetime {
        Some(lifetime) if lifetime.ident == "static" => {
            let owned = owned(inner);
            errors.at(
                reference,
                format!(
                    "a payload is read back from the store, so it is never `'static`; write `{}`",
                    if is_str { "&str" } else { &owned }
                ),
            );
            return None;
        }
        // Undeclared: the compiler reports it. Declared: reported at the parameter.
        Some(lifetime) if lifetime.ident != "_" => return None,
        _ if lifetimes_reported && !is_str => return None,
        _ => {}
    }
    if is_str && reference.mutability.is_none() {
        return Some(true);
    }
    let (owned, found) = (owned(inner), spell(reference));
    let shared = match inner {
        Type::Path(_) if reference.mutability.is_none() && !is_known_unsized(inner) => {
            format!(" (shared state is taken as `Data<{owned}>`)")
        }
        _ => String::new(),
    };
    errors.at(
        reference,
        format!(
            "a payload is stored, so it cannot be borrowed as `{found}`; write `{owned}`{shared}"
        ),
    );
    None
}

/// The owned counterpart of a borrowed type.
fn owned(inner: &Type) -> String {
    match inner {
        Type::Slice(slice) => format!("Vec<{}>", spell(&*slice.elem)),
        other => match last_segment(other)
            .map(|last| last.ident.to_string())
            .as_deref()
        {
            Some("str") => "String".to_owned(),
            Some("Path") => "PathBuf".to_owned(),
            Some("OsStr") => "OsString".to_owned(),
            _ => spell(other),
        },
    }
}

fn is_known_unsized(inner: &Type) -> bool {
    last_segment(inner).is_some_and(|last| {
        ["str", "Path", "OsStr"]
            .iter()
            .any(|name| last.ident == name)
    })
}

enum Borrow {
    /// `'a`
    Named,
    /// `'_` or `&T`
    Anonymous,
    /// `impl Trait`
    Opaque,
}

/// The first thing inside a type that keeps it from being stored.
fn borrow_inside(tokens: TokenStream) -> Option<Borrow> {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let found = match token {
            TokenTree::Group(group) => borrow_inside(group.stream()),
            TokenTree::Ident(word) if word == "impl" => Some(Borrow::Opaque),
            TokenTree::Punct(punct) if punct.as_char() == '\'' => match tokens.next() {
                Some(TokenTree::Ident(name)) if name == "static" => None,
                Some(TokenTree::Ident(name)) if name == "_" => Some(Borrow::Anonymous),
                _ => Some(Borrow::Named),
            },
            TokenTree::Punct(punct) if punct.as_char() == '&' => match tokens.peek() {
                Some(TokenTree::Punct(next)) if next.as_char() == '\'' => None,
                _ => Some(Borrow::Anonymous),
            },
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
