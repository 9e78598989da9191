//! Reads the item under the attribute.
//!
//! Takes the signature apart and keeps the body as tokens that nobody looks into, so that half-typed code
//! in a body never costs the user the generated items. The attributes that only this macro understands
//! are taken off the arguments here, once, whatever happens later: the compiler would refuse them.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, FnArg, Meta, Pat, PatType, Receiver, Signature, Token, Type, Visibility, parse_quote,
};

/// What stood under the attribute.
pub(crate) enum Item {
    Function(Box<Function>),
    /// Anything else, with its keyword for the message.
    Other {
        keyword: Option<Ident>,
    },
    /// A function that syn cannot read.
    Unreadable(syn::Error),
}

/// A function with its arguments taken apart.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    /// More `#[job]`s, which are taken off: each would generate the same items again.
    pub(crate) repeated: Vec<Attribute>,
    pub(crate) vis: Visibility,
    /// The signature without this macro's attributes on its arguments.
    pub(crate) sig: Signature,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) body: TokenStream,
}

/// One argument of the function.
pub(crate) struct Argument {
    pub(crate) pat: Pat,
    /// The type without the invisible brackets that `macro_rules!` puts around it.
    pub(crate) ty: Type,
    pub(crate) docs: Vec<Attribute>,
    /// `#[inject]`
    pub(crate) inject: Option<Attribute>,
    /// `#[arg(..)]`
    pub(crate) options: Vec<Attribute>,
    /// `#[serde(..)]`, which has no meaning here and is taken off for an error that says so.
    pub(crate) serde: Vec<Attribute>,
    /// `#[cfg(..)]` or `#[cfg_attr(..)]`
    pub(crate) cfg: Option<Attribute>,
}

impl Function {
    /// The function as the compiler shall see it. An argument that `is_used` is so whether or not the body
    /// mentions it: the advice of the lint, an underscore before the name, would break the key.
    pub(crate) fn cleaned(&self, is_used: impl Fn(&Ident) -> bool) -> TokenStream {
        let mut sig = self.sig.clone();
        for input in &mut sig.inputs {
            if let FnArg::Typed(PatType { attrs, pat, .. }) = input
                && let Pat::Ident(plain) = &**pat
                && is_used(&plain.ident)
            {
                attrs.push(parse_quote!(#[allow(unused_variables)]));
            }
        }
        let mut tokens = TokenStream::new();
        self.attrs
            .iter()
            .for_each(|attr| attr.to_tokens(&mut tokens));
        self.vis.to_tokens(&mut tokens);
        sig.to_tokens(&mut tokens);
        tokens.extend(self.body.clone());
        tokens
    }
}

/// Reads `tokens`, the item under the attribute.
pub(crate) fn item(tokens: TokenStream) -> Item {
    match syn::parse2::<Head>(tokens) {
        Err(error) => Item::Unreadable(error),
        Ok(Head {
            sig: None, keyword, ..
        }) => Item::Other { keyword },
        Ok(Head {
            mut attrs,
            vis,
            sig: Some(mut sig),
            body,
            ..
        }) => {
            let repeated = attrs.extract_if(.., |attr| is_job(attr)).collect();
            let inputs = std::mem::take(&mut sig.inputs);
            let mut receiver = None;
            let mut arguments = Vec::new();
            sig.inputs = inputs
                .into_pairs()
                .map(|mut pair| {
                    match pair.value_mut() {
                        FnArg::Receiver(found) => receiver = Some(found.clone()),
                        FnArg::Typed(typed) => arguments.push(argument(typed)),
                    }
                    pair
                })
                .collect::<Punctuated<FnArg, Token![,]>>();
            Item::Function(Box::new(Function {
                attrs,
                repeated,
                vis,
                sig,
                receiver,
                arguments,
                body,
            }))
        }
    }
}

/// `#[job]`, also by a path: `#[queue_runtime::job(..)]`.
fn is_job(attr: &Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|last| last.ident == "job")
}

/// Takes this macro's attributes off `typed` and returns them with the rest of the argument.
fn argument(typed: &mut PatType) -> Argument {
    let mut read = Argument {
        pat: (*typed.pat).clone(),
        ty: peel(&typed.ty).clone(),
        docs: Vec::new(),
        inject: None,
        options: Vec::new(),
        serde: Vec::new(),
        cfg: None,
    };
    for attr in std::mem::take(&mut typed.attrs) {
        match attr.path().get_ident().map(Ident::to_string).as_deref() {
            Some("doc") => read.docs.push(attr),
            Some("inject") if matches!(attr.meta, Meta::Path(_)) => read.inject = Some(attr),
            Some("arg") => read.options.push(attr),
            Some("serde") => read.serde.push(attr),
            Some("cfg" | "cfg_attr") => read.cfg = Some(attr),
            _ => typed.attrs.push(attr),
        }
    }
    read
}

/// The type inside invisible brackets and parentheses.
pub(crate) fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peel(&group.elem),
        Type::Paren(paren) => peel(&paren.elem),
        other => other,
    }
}

/// The item up to its body.
struct Head {
    attrs: Vec<Attribute>,
    vis: Visibility,
    sig: Option<Signature>,
    keyword: Option<Ident>,
    body: TokenStream,
}

impl Parse for Head {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        let keyword = first_word(input);
        // Only a function has `fn` before its first group of brackets.
        let sig = if is_function(input) {
            Some(input.parse()?)
        } else {
            None
        };
        let body: TokenStream = input.parse()?;
        Ok(Self {
            attrs,
            vis,
            sig,
            keyword,
            body,
        })
    }
}

fn first_word(input: ParseStream<'_>) -> Option<Ident> {
    let ahead = input.fork();
    match ahead.parse::<TokenTree>() {
        Ok(TokenTree::Ident(word)) => Some(word),
        _ => None,
    }
}

fn is_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    while let Ok(token) = ahead.parse::<TokenTree>() {
        match token {
            TokenTree::Ident(word) if word == "fn" => return true,
            // The words and the ABI string that may stand before `fn`.
            TokenTree::Ident(word)
                if ["const", "async", "unsafe", "extern", "safe", "gen"]
                    .iter()
                    .any(|w| word == w) => {}
            TokenTree::Literal(_) => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(text: &str) -> Function {
        match item(text.parse().expect("the case is made of tokens")) {
            Item::Function(function) => *function,
            _ => panic!("the case is a function: {text}"),
        }
    }

    #[test]
    fn the_macros_own_attributes_leave_the_argument_and_the_others_stay() {
        let read = function(
            "async fn f(#[doc = \"d\"] #[arg(default)] #[serde(default)] #[allow(unused)] a: u8, #[inject] t: Tenant) { a. }",
        );
        let cleaned = read.cleaned(|_| false).to_string();
        assert!(cleaned.contains("allow"), "{cleaned}");
        for taken in ["doc", "arg", "inject", "serde"] {
            assert!(!cleaned.contains(taken), "{taken} in {cleaned}");
        }
        assert_eq!(read.arguments[0].docs.len(), 1);
        assert_eq!(read.arguments[0].options.len(), 1);
        assert!(read.arguments[1].inject.is_some());
    }

    #[test]
    fn the_lint_on_unused_arguments_is_off_for_those_in_keys_alone() {
        let read = function("async fn f(mut r#type: u8, b: u8) {}");
        let cleaned = read.cleaned(|name| name == "r#type").to_string();
        assert_eq!(cleaned.matches("unused_variables").count(), 1, "{cleaned}");
        assert!(
            cleaned.contains("(unused_variables)] mut r#type"),
            "{cleaned}"
        );
    }

    #[test]
    fn other_items_give_their_keyword() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            match item(text.parse().expect("the case is made of tokens")) {
                Item::Other {
                    keyword: Some(found),
                } => assert_eq!(found.to_string(), expected),
                _ => panic!("the case is no function: {text}"),
            }
        }
        check("pub struct S { f: fn(u8) }", "struct");
        check("mod m { fn f() {} }", "mod");
        check("const F: fn() = g;", "const");
        check("impl S { fn f() {} }", "impl");
    }
}
