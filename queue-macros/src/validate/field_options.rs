//! Judges the `#[arg(..)]` of payload arguments, which say how a field is stored and read back.

use proc_macro2::Ident;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, LitStr, Meta, Path, Token};

use crate::errors::Errors;
use crate::model::{Arg, Field, FieldDefault};
use crate::parse::Argument;
use crate::spelling::spell;
use crate::suggest;

/// Reads every `#[arg(..)]` of one argument into `field`.
pub(crate) fn read(field: &mut Field, written: &Argument, errors: &mut Errors) {
    for option in &written.options {
        if let Err(error) = option.parse_nested_meta(|meta| arg_option(field, &meta)) {
            errors.push(error);
        }
    }
    for attr in &written.serde {
        errors.at(attr, instead_of_serde(attr));
    }
}

/// What says something about how an argument is stored, and with which word.
pub(crate) fn all(written: &Argument) -> impl Iterator<Item = (&Attribute, &'static str)> {
    let options = written.options.iter().map(|attr| (attr, "arg"));
    options.chain(written.serde.iter().map(|attr| (attr, "serde")))
}

/// The words for `#[serde(..)]`: no serde derive reads it, since the macro writes the codec.
fn instead_of_serde(attr: &Attribute) -> String {
    let list = attr.meta.require_list().ok();
    let known = |meta: &Meta| ARG_OPTIONS.iter().any(|name| meta.path().is_ident(name));
    let all_known = attr
        .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        .is_ok_and(|metas| !metas.is_empty() && metas.iter().all(known));
    match list.filter(|_| all_known) {
        Some(list) => format!(
            "`#[serde(..)]` has no effect on an argument of a job; write `#[arg({})]`",
            spell(&list.tokens)
        ),
        None => format!(
            "`#[serde(..)]` has no effect on an argument of a job; `#[arg(..)]` takes {}, and whatever \
             else serde can do goes on a type of your own",
            suggest::list(ARG_OPTIONS)
        ),
    }
}

/// Reports two payload fields that would be stored under one name.
pub(crate) fn stored_names(arguments: &[Arg], errors: &mut Errors) {
    let mut seen: Vec<(&str, &Ident)> = Vec::new();
    for argument in arguments {
        let Arg::Payload(field) = argument else {
            continue;
        };
        for name in std::iter::once(&field.stored).chain(&field.aliases) {
            match seen.iter().find(|(taken, _)| taken == name) {
                // Two arguments of one name are the compiler's to report.
                Some((_, other)) if **other == field.ident && field.stored == *name => {}
                Some((_, other)) => errors.at(
                    &field.ident,
                    format!(
                        "`{}` would be stored as \"{name}\", as `{other}` is; give it another name",
                        field.ident
                    ),
                ),
                None => seen.push((name, &field.ident)),
            }
        }
    }
}

const ARG_OPTIONS: [&str; 3] = ["default", "rename", "alias"];

/// Reads one option of `#[arg(..)]`.
fn arg_option(field: &mut Field, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    let name = meta
        .path
        .get_ident()
        .map(Ident::to_string)
        .unwrap_or_default();
    match name.as_str() {
        "default" if !meta.input.peek(Token![=]) => field.default = Some(FieldDefault::Trait),
        "default" => {
            let path = meta.value()?.parse::<Path>().map_err(|error| {
                syn::Error::new(
                    error.span(),
                    "`default` takes a path to a function, as in `default = no_retries`",
                )
            })?;
            field.default = Some(FieldDefault::Function(path));
        }
        "rename" => field.stored = stored_name(meta, "rename")?,
        "alias" => field.aliases.push(stored_name(meta, "alias")?),
        _ => {
            let hint = suggest::hint(&name, ARG_OPTIONS);
            let hint = if hint.is_empty() {
                format!("; the options are {}", suggest::list(ARG_OPTIONS))
            } else {
                hint
            };
            return Err(meta.error(format!("unknown `#[arg]` option `{name}`{hint}")));
        }
    }
    Ok(())
}

fn stored_name(meta: &ParseNestedMeta<'_>, option: &str) -> syn::Result<String> {
    let wrong = |span| {
        syn::Error::new(
            span,
            format!("`{option}` takes a string, as in `{option} = \"uid\"`"),
        )
    };
    let value = meta.value().map_err(|error| wrong(error.span()))?;
    let literal: LitStr = value.parse().map_err(|error| wrong(error.span()))?;
    let name = literal.value();
    // The runtime writes field names into JSON as they are.
    let stranger = name
        .chars()
        .find(|c| c.is_control() || ['"', '\\'].contains(c));
    let rule = match stranger {
        Some(stranger) => format!("`{option}` holds `{}`", stranger.escape_debug()),
        None if name.is_empty() => format!("`{option}` is empty"),
        None => return Ok(name),
    };
    Err(syn::Error::new(
        literal.span(),
        format!("{rule}; write a plain name, as in `{option} = \"uid\"`"),
    ))
}
