//! Cuts an attribute into its options, before anything is known about them.
//!
//! Gives every option its name and the tokens of its value, whatever they are.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;

use crate::errors::Errors;

/// One option as written.
pub(crate) struct Written {
    pub(crate) key: Ident,
    pub(crate) form: Form,
}

/// What follows the name of an option.
pub(crate) enum Form {
    /// `retries`
    Bare,
    /// `retries =`
    NoValue,
    /// `retries 5`
    NoEquals(TokenStream),
    /// `retries = 5`
    Equals(TokenStream),
    /// `derive(Clone)`
    List(TokenStream),
}

impl Written {
    /// The option's name, without the `r#` of a raw identifier.
    pub(crate) fn name(&self) -> String {
        let name = self.key.to_string();
        name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
    }

    /// The tokens to underline when the value is at fault.
    pub(crate) fn blame(&self) -> TokenStream {
        match &self.form {
            Form::Bare | Form::NoValue => self.key.to_token_stream(),
            Form::NoEquals(value) | Form::Equals(value) | Form::List(value) => {
                if value.is_empty() {
                    self.key.to_token_stream()
                } else {
                    value.clone()
                }
            }
        }
    }
}

/// Cuts `attr` into options. Pieces that do not start with a name are reported and left out.
pub(crate) fn options(attr: TokenStream, errors: &mut Errors) -> Vec<Written> {
    let pieces = split(attr, errors);
    pieces
        .into_iter()
        .filter_map(|piece| written(piece, errors))
        .collect()
}

/// Splits at the commas outside of any brackets, also the angle ones of a path and the bars of a closure;
/// and where a comma is missing, since a new option begins.
fn split(attr: TokenStream, errors: &mut Errors) -> Vec<Vec<TokenTree>> {
    let mut pieces: Vec<Vec<TokenTree>> = vec![Vec::new()];
    let mut angles = 0_u32;
    let mut in_bars = false;
    let mut tokens = attr.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let sign = sign(&token);
        let open = pieces.last_mut();
        match sign {
            '<' => angles += 1,
            '>' => angles = angles.saturating_sub(1),
            '|' => in_bars = !in_bars && open.as_ref().is_some_and(|piece| may_open_bars(piece)),
            _ => {}
        }
        let outside = angles == 0 && !in_bars;
        match open {
            Some(piece) if outside && begins_option(piece, &token, tokens.peek()) => {
                errors.at(
                    &token,
                    format!(
                        "a comma is missing before `{token}`, as in `retries = 5, timeout = \"60s\"`"
                    ),
                );
                pieces.push(vec![token]);
            }
            Some(piece) if sign == ',' && outside => {
                if piece.is_empty() {
                    errors.at(
                        token,
                        "expected an option before this comma, as in `retries = 5`",
                    );
                } else {
                    pieces.push(Vec::new());
                }
            }
            Some(piece) => piece.push(token),
            None => {}
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn sign(token: &TokenTree) -> char {
    match token {
        TokenTree::Punct(punct) => punct.as_char(),
        _ => ' ',
    }
}

/// Whether a closure may begin behind `piece`: at the value, or behind `move`.
fn may_open_bars(piece: &[TokenTree]) -> bool {
    match piece.last() {
        Some(TokenTree::Ident(word)) => word == "move",
        Some(last) => sign(last) == '=',
        None => false,
    }
}

/// Whether `token` is the name of another option: behind a whole value, and before `=` or a list.
fn begins_option(piece: &[TokenTree], token: &TokenTree, next: Option<&TokenTree>) -> bool {
    let behind_a_value = piece.len() >= 2
        && piece.last().is_some_and(|last| match last {
            TokenTree::Punct(_) => sign(last) == '>',
            _ => true,
        });
    let before_its_own = next.is_some_and(|next| match next {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        next => sign(next) == '=',
    });
    behind_a_value && before_its_own && matches!(token, TokenTree::Ident(_))
}

fn written(piece: Vec<TokenTree>, errors: &mut Errors) -> Option<Written> {
    let mut tokens = piece.iter().cloned();
    let key = match tokens.next() {
        Some(TokenTree::Ident(key)) => key,
        first => {
            errors.at(
                piece.into_iter().collect::<TokenStream>(),
                nameless(first.as_ref()),
            );
            return None;
        }
    };
    let form = match tokens.next() {
        None => Form::Bare,
        Some(TokenTree::Punct(equals)) if equals.as_char() == '=' => {
            let value: TokenStream = tokens.collect();
            if value.is_empty() {
                Form::NoValue
            } else {
                Form::Equals(value)
            }
        }
        Some(TokenTree::Group(group))
            if group.delimiter() == Delimiter::Parenthesis && piece.len() == 2 =>
        {
            Form::List(group.stream())
        }
        Some(other) => Form::NoEquals(std::iter::once(other).chain(tokens).collect()),
    };
    Some(Written { key, form })
}

fn nameless(first: Option<&TokenTree>) -> String {
    match first {
        Some(TokenTree::Literal(literal)) if literal.to_string().starts_with('"') => {
            format!("an option starts with its name; write `name = {literal}`")
        }
        _ => "an option starts with its name, as in `retries = 5`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spelling::spell;

    #[test]
    fn every_option_is_cut_out_alone() {
        #[track_caller]
        fn check(attr: &str, expected: &[(&str, &str)]) {
            let mut errors = Errors::default();
            let tokens = attr.parse().expect("the case is made of tokens");
            let read: Vec<(String, String)> = options(tokens, &mut errors)
                .iter()
                .map(|option| (option.name(), spell(&option.blame())))
                .collect();
            let expected: Vec<(String, String)> = expected
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect();
            assert_eq!(read, expected, "{attr}");
            assert_eq!(errors.count(), 0, "{attr}");
        }
        check("", &[]);
        check("retries = 5,", &[("retries", "5")]);
        check(
            "retries, crate = a",
            &[("retries", "retries"), ("crate", "a")],
        );
        check("retries 5, name =", &[("retries", "5"), ("name", "name")]);
        check(
            "derive(A, B), priority = -1",
            &[("derive", "A, B"), ("priority", " -1")],
        );
        check(
            "retry_if = f::<A, B>, name = \"n\"",
            &[("retry_if", "f::<A, B>"), ("name", "\"n\"")],
        );
    }

    #[test]
    fn a_piece_without_a_name_is_one_error_and_hides_no_other() {
        #[track_caller]
        fn check(attr: &str, left: usize, expected: &str) {
            let mut errors = Errors::default();
            let tokens = attr.parse().expect("the case is made of tokens");
            assert_eq!(options(tokens, &mut errors).len(), left, "{attr}");
            assert_eq!(errors.messages(), [expected], "{attr}");
        }
        check(
            "\"n\", retries = 5",
            1,
            "an option starts with its name; write `name = \"n\"`",
        );
        check(
            "5",
            0,
            "an option starts with its name, as in `retries = 5`",
        );
        check(
            "retries = 5,, queue = \"q\"",
            2,
            "expected an option before this comma, as in `retries = 5`",
        );
    }

    #[test]
    fn a_missing_comma_is_one_error_and_both_options_are_read() {
        #[track_caller]
        fn check(attr: &str, expected: &[&str]) {
            let mut errors = Errors::default();
            let tokens = attr.parse().expect("the case is made of tokens");
            let names: Vec<String> = options(tokens, &mut errors)
                .iter()
                .map(Written::name)
                .collect();
            assert_eq!(names, expected, "{attr}");
            let said = format!(
                "a comma is missing before `{}`, as in `retries = 5, timeout = \"60s\"`",
                expected[1]
            );
            assert_eq!(errors.messages(), [said], "{attr}");
        }
        check("retries = 3 timeout = \"3s\"", &["retries", "timeout"]);
        check("derive(Clone) retries = 3", &["derive", "retries"]);
        check("retries = 3 dedupe(user_id)", &["retries", "dedupe"]);
        check("retry_if = f::<A> queue = \"q\"", &["retry_if", "queue"]);
    }

    #[test]
    fn the_commas_of_a_closure_cut_nothing() {
        let mut errors = Errors::default();
        let attr = "upcast = move |_, _| Ok(()), retry_if = || true, schema = 2";
        let tokens = attr.parse().expect("the case is made of tokens");
        let names: Vec<String> = options(tokens, &mut errors)
            .iter()
            .map(Written::name)
            .collect();
        assert_eq!(names, ["upcast", "retry_if", "schema"]);
        assert_eq!(errors.count(), 0);
    }
}
