//! Writes tokens the way a person would, in one spelling on every compiler.
//!
//! `TokenStream::to_string` promises nothing about its spaces, and stored descriptions of a payload must
//! not change with the compiler; so the spaces are decided here.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

/// The source text of a type or path: no space but the needed ones and one after each comma.
pub(crate) fn spell(tokens: &impl ToTokens) -> String {
    let mut text = String::new();
    write(tokens.to_token_stream(), &mut text);
    text
}

fn write(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                write(group.stream(), text);
                text.push_str(close);
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                ',' | ';' => text.extend([punct.as_char(), ' ']),
                '+' | '=' => text.extend([' ', punct.as_char(), ' ']),
                other => {
                    let opens_arrow = other == '-';
                    text.push_str(if opens_arrow { " -" } else { "" });
                    text.extend((!opens_arrow).then_some(other));
                }
            },
            word => {
                let touches = text.ends_with(|last: char| last.is_alphanumeric() || last == '_');
                text.push_str(if touches { " " } else { "" });
                text.push_str(&word.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_reads_as_it_was_written() {
        #[track_caller]
        fn check(text: &str) {
            let ty: syn::Type = syn::parse_str(text).expect("the case is a type");
            assert_eq!(spell(&ty), text);
        }
        check("UserId");
        check("Option<Vec<u8>>");
        check("std::collections::HashMap<String, Vec<(u8, i64)>>");
        check("[u8; 32]");
        check("&'static str");
        check("&mut String");
        check("Box<dyn Send + Sync>");
        check("impl Into<String>");
    }
}
