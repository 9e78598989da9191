//! Collects the mistakes found in one attribute, so that the user sees all of them in one build.
//!
//! Every mistake becomes exactly one compiler error at the tokens that hold it. Nothing here decides
//! what a mistake is.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The mistakes found so far, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
}

impl Errors {
    /// Adds a mistake that underlines all of `tokens`, or the attribute if there are none.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.found.push(syn::Error::new_spanned(tokens, message));
    }

    /// Adds a mistake that syn has described already.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.found.push(error);
    }

    /// How many mistakes were found.
    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// One `compile_error!` per mistake.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.found
            .iter()
            .map(syn::Error::to_compile_error)
            .collect()
    }

    /// The messages alone, for tests.
    #[cfg(test)]
    pub(crate) fn messages(&self) -> Vec<String> {
        self.found.iter().map(ToString::to_string).collect()
    }
}
