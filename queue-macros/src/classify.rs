//! Writes `Classify` for an error type whose variants are marked `#[job(permanent)]` or `#[job(retry)]`.
//!
//! Unmarked variants are `Unknown`: the runtime then decides as it does for any other error. A struct is
//! marked as a whole.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Generics, Item, ItemEnum, Path};

use crate::errors::Errors;
use crate::suggest;
use crate::validate::default_runtime;

const MARKS: [&str; 2] = ["permanent", "retry"];

/// What a mark says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Permanent,
    Retry,
}

/// The marks of one place.
#[derive(Default)]
struct Marked {
    mark: Option<Mark>,
    runtime: Option<Path>,
}

/// The impl, and one error per mistake.
pub(crate) fn classify(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let item = match syn::parse2(input) {
        Ok(Item::Struct(item)) => {
            let whole = marked(&item.attrs, &mut errors);
            let class = class(whole.mark);
            implementation(&item.ident, &item.generics, whole.runtime, &class)
        }
        Ok(Item::Enum(item)) => of_enum(&item, &mut errors),
        Ok(other) => {
            errors.at(
                other,
                "`Classify` is for error types, which are enums or structs",
            );
            TokenStream::new()
        }
        Err(error) => error.to_compile_error(),
    };
    let errors = errors.into_tokens();
    quote!(#item #errors)
}

fn of_enum(item: &ItemEnum, errors: &mut Errors) -> TokenStream {
    let whole = marked(&item.attrs, errors);
    if whole.mark.is_some() {
        let place = item.attrs.iter().find(|attr| attr.path().is_ident("job"));
        errors.at(
            place,
            "on an enum the mark goes on its variants, as in `#[job(permanent)] NotFound`",
        );
    }
    let arms: TokenStream = item
        .variants
        .iter()
        .map(|variant| {
            let class = class(marked(&variant.attrs, errors).mark);
            let name = &variant.ident;
            quote!(Self::#name { .. } => #class,)
        })
        .collect();
    let value = if item.variants.is_empty() {
        quote!(*self)
    } else {
        quote!(self)
    };
    implementation(
        &item.ident,
        &item.generics,
        whole.runtime,
        &quote!(match #value { #arms }),
    )
}

fn implementation(
    name: &Ident,
    generics: &Generics,
    runtime: Option<Path>,
    class: &TokenStream,
) -> TokenStream {
    let runtime = runtime.unwrap_or_else(default_runtime);
    let (generics, arguments, bounds) = generics.split_for_impl();
    quote! {
        #[allow(deprecated)]
        const _: () = {
            use #runtime::private as __q;
            #[automatically_derived]
            impl #generics __q::Classify for #name #arguments #bounds {
                fn class(&self) -> __q::Class {
                    #class
                }
            }
        };
    }
}

fn class(mark: Option<Mark>) -> TokenStream {
    let variant = match mark {
        Some(Mark::Permanent) => "Permanent",
        Some(Mark::Retry) => "Retry",
        None => "Unknown",
    };
    let variant = Ident::new(variant, Span::call_site());
    quote!(__q::Class::#variant)
}

/// Reads every `#[job(..)]` of one place.
fn marked(attrs: &[Attribute], errors: &mut Errors) -> Marked {
    let mut found = Marked::default();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("job")) {
        if let Err(error) = attr.parse_nested_meta(|meta| mark(&mut found, &meta)) {
            errors.push(error);
        }
    }
    found
}

fn mark(found: &mut Marked, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    let word = meta.path.to_token_stream().to_string();
    let mark = match word.as_str() {
        "permanent" => Mark::Permanent,
        "retry" => Mark::Retry,
        "crate" => {
            found.runtime = Some(meta.value()?.parse()?);
            return Ok(());
        }
        _ => {
            let hint = suggest::hint(&word, MARKS);
            let hint = if hint.is_empty() {
                "; the marks are `permanent` and `retry`"
            } else {
                &hint
            };
            return Err(meta.error(format!("unknown mark `{word}`{hint}")));
        }
    };
    match found.mark.replace(mark) {
        Some(other) if other != mark => {
            Err(meta.error("an error is `permanent` or `retry`, not both; keep one of them"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_mark_is_one_error_and_the_impl_is_still_written() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let tokens = classify(text.parse().expect("the case is made of tokens")).to_string();
            assert!(tokens.contains(expected), "{expected}\nin {tokens}");
            assert_eq!(tokens.matches("compile_error").count(), 1, "{tokens}");
            assert!(tokens.contains("__q :: Classify for E"), "{tokens}");
        }
        check(
            "enum E { #[job(permanant)] A }",
            "unknown mark `permanant`; did you mean `permanent`?",
        );
        check("enum E { #[job(permanent, retry)] A }", "not both");
        check(
            "#[job(retry)] enum E { A }",
            "the mark goes on its variants",
        );
    }

    #[test]
    fn a_union_is_refused() {
        let tokens = classify(
            "union E { a: u8 }"
                .parse()
                .expect("the case is made of tokens"),
        );
        assert!(tokens.to_string().contains("enums or structs"), "{tokens}");
    }
}
