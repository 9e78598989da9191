//! Reads the value of one option as the kind of thing that the option takes.
//!
//! Each reader gives the value, or adds exactly one error that points at what was written and shows the
//! accepted form.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, Parser};
use syn::punctuated::Punctuated;
use syn::{LitInt, LitStr, Path, Token};

use super::chosen::Value;
use crate::errors::Errors;
use crate::parse::{Form, duration};

/// A string.
pub(crate) fn text(value: Value<'_>, errors: &mut Errors) -> Option<LitStr> {
    single(value, errors)
}

/// A string that `read` understands; `read` says what is wrong otherwise.
pub(crate) fn read_text<T>(
    value: Value<'_>,
    read: impl FnOnce(&str) -> Result<T, String>,
    errors: &mut Errors,
) -> Option<T> {
    let literal = text(value, errors)?;
    match read(&literal.value()) {
        Ok(read) => Some(read),
        Err(fault) => {
            errors.at(&literal, format!("`{}`: {fault}", value.spec.name));
            None
        }
    }
}

/// A duration from one millisecond to `days_max` days; `zero` says what to write for "nothing".
pub(crate) fn some_time(
    value: Value<'_>,
    days_max: u64,
    zero: &str,
    errors: &mut Errors,
) -> Option<Duration> {
    read_text(value, |text| time_within(text, days_max, zero), errors)
}

/// Reads `text` as a duration, and refuses zero and more than `days_max` days.
pub(crate) fn time_within(text: &str, days_max: u64, zero: &str) -> Result<Duration, String> {
    match duration::duration(text)? {
        Duration::ZERO => Err(format!("a duration of zero makes no sense here; {zero}")),
        long if long > Duration::from_hours(24 * days_max) => Err(format!(
            "`{text}` is too long; the longest is `{days_max}d`"
        )),
        duration => Ok(duration),
    }
}

/// A whole number within `range`.
pub(crate) fn number<T>(
    value: Value<'_>,
    range: RangeInclusive<i64>,
    errors: &mut Errors,
) -> Option<T>
where
    T: TryFrom<i64>,
{
    let tokens = equals(value, errors)?;
    let parser = |input: syn::parse::ParseStream<'_>| {
        let minus: Option<Token![-]> = input.parse()?;
        let digits: LitInt = input.parse()?;
        Ok((minus.is_some(), digits))
    };
    let (negative, digits) = match parser.parse2(tokens.clone()) {
        Ok((negative, digits)) if digits.suffix().is_empty() => (negative, digits),
        _ => return wrong_kind(value, errors),
    };
    let sign = if negative { "-" } else { "" };
    let written = format!("{sign}{}", digits.base10_digits());
    let number = written
        .parse::<i64>()
        .ok()
        .filter(|number| range.contains(number));
    let fitting = number.and_then(|number| T::try_from(number).ok());
    if fitting.is_none() {
        let (from, to) = (range.start(), range.end());
        let message = format!(
            "`{}` must be from {from} to {to}; found {written}",
            value.spec.name
        );
        errors.at(tokens, message);
    }
    fitting
}

/// A path to something.
pub(crate) fn path(value: Value<'_>, errors: &mut Errors) -> Option<Path> {
    single(value, errors)
}

/// A path to a function. A closure is the likely mistake, so it has words of its own.
pub(crate) fn function(value: Value<'_>, errors: &mut Errors) -> Option<Path> {
    let is_closure = match equals(value, errors)?.into_iter().next() {
        Some(TokenTree::Punct(bar)) => bar.as_char() == '|',
        Some(TokenTree::Ident(word)) => word == "move",
        _ => false,
    };
    if is_closure {
        let Value { spec, written } = value;
        let message = format!(
            "`{}` takes the name of a function, not a closure; write a `fn` and name it here, as in `{}`",
            spec.name, spec.example
        );
        return fault(written.blame(), message, errors);
    }
    path(value, errors)
}

/// A path that means the same in every module.
pub(crate) fn absolute_path(value: Value<'_>, errors: &mut Errors) -> Option<Path> {
    let path = path(value, errors)?;
    let rooted = path
        .segments
        .first()
        .is_some_and(|first| first.ident == "crate" || is_dollar_crate(&first.ident));
    if path.leading_colon.is_none() && !rooted {
        return wrong_kind(value, errors);
    }
    Some(path)
}

/// `$crate` reaches us as one identifier when a `macro_rules!` writes the attribute.
fn is_dollar_crate(ident: &Ident) -> bool {
    let text = ident.to_string();
    text == "$crate"
}

/// A plain name.
pub(crate) fn ident(value: Value<'_>, errors: &mut Errors) -> Option<Ident> {
    single(value, errors)
}

/// A list of paths in parentheses, at least one.
pub(crate) fn paths(value: Value<'_>, errors: &mut Errors) -> Option<Vec<Path>> {
    let Form::List(tokens) = &value.written.form else {
        return wrong_kind(value, errors);
    };
    match Punctuated::<Path, Token![,]>::parse_terminated.parse2(tokens.clone()) {
        Ok(paths) if !paths.is_empty() => Some(paths.into_iter().collect()),
        _ => wrong_kind(value, errors),
    }
}

/// Exactly one `T` behind `=`.
fn single<T: Parse>(value: Value<'_>, errors: &mut Errors) -> Option<T> {
    let tokens = equals(value, errors)?;
    match syn::parse2(tokens) {
        Ok(read) => Some(read),
        Err(_) => wrong_kind(value, errors),
    }
}

/// The tokens behind `=`, without invisible brackets.
pub(crate) fn equals(value: Value<'_>, errors: &mut Errors) -> Option<TokenStream> {
    let Value { spec, written } = value;
    match &written.form {
        Form::Equals(tokens) => Some(flat(tokens.clone())),
        Form::List(_) => wrong_kind(value, errors),
        Form::Bare | Form::NoValue => fault(
            &written.key,
            format!(
                "option `{}` needs a value, as in `{}`",
                spec.name, spec.example
            ),
            errors,
        ),
        Form::NoEquals(tokens) => fault(
            tokens,
            format!(
                "expected `=` after `{}`, as in `{}`",
                spec.name, spec.example
            ),
            errors,
        ),
    }
}

/// Adds "`retries` takes a whole number, as in `retries = 5`", at the value.
pub(crate) fn wrong_kind<T>(value: Value<'_>, errors: &mut Errors) -> Option<T> {
    let spec = value.spec;
    let message = format!(
        "`{}` takes {}, as in `{}`",
        spec.name, spec.takes, spec.example
    );
    fault(value.written.blame(), message, errors)
}

fn fault<T>(place: impl ToTokens, message: impl Display, errors: &mut Errors) -> Option<T> {
    errors.at(place, message);
    None
}

/// Opens the invisible brackets that `macro_rules!` puts around what it passes on.
fn flat(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
            other => other.into(),
        })
        .collect()
}
