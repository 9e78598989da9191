//! Writes `impl Job`: how a payload is stored, read back, and which keys it has.
//!
//! The codec goes field by field instead of deriving serde: an argument that cannot be stored is one
//! error at its type, and a job compiles three times as fast.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::LitStr;

use super::{local, stored_type};
use crate::model::{Field, FieldDefault, Job, Key, KeyPath};

/// The whole impl.
pub(crate) fn job_impl(job: &Job) -> TokenStream {
    let payload = &job.payload;
    let (writer, reader) = (local("w"), local("r"));
    let puts = job.fields().map(|field| {
        let (Field { ident, stored, .. }, ty) = (field, stored_type(field, quote!(__q::String)));
        quote!(<#ty as __q::PayloadArg>::put(&self.#ident, #stored, #writer)?;)
    });
    let takes = job.fields().map(|field| take(field, &reader));
    let keys = [
        ("dedupe_key", &job.keys.dedupe),
        ("idempotency_key", &job.keys.idempotency),
        ("cache_key", &job.keys.cache),
    ];
    let keys = keys
        .into_iter()
        .filter_map(|(name, key)| Some(key_fn(job, name, key.as_ref()?)));
    let version = job.keys.version.as_ref().map(|path| version_fn(job, path));
    quote! {
        impl __q::Job for #payload {
            const DEF: &'static __q::JobDef = &__JOB_DEF;
            fn encode(&self, #writer: &mut __q::PayloadWriter) -> __q::Result<(), __q::PayloadError> {
                #(#puts)*
                __q::Ok(())
            }
            fn decode(#reader: &__q::PayloadReader<'_>) -> __q::Result<Self, __q::PayloadError> {
                __q::Ok(#payload { #(#takes)* })
            }
            #(#keys)*
            #version
        }
    }
}

/// `user_id: <UserId as PayloadArg>::take(r, "user_id")?,`
fn take(field: &Field, reader: &Ident) -> TokenStream {
    let Field {
        ident,
        stored,
        aliases,
        default,
        ..
    } = field;
    let ty = stored_type(field, quote!(__q::String));
    let call = match default {
        None if aliases.is_empty() => quote!(take(#reader, #stored)),
        None => quote!(take_any(#reader, &[#stored #(, #aliases)*])),
        Some(default) => {
            let function = match default {
                FieldDefault::Trait => quote!(<#ty as ::core::default::Default>::default),
                FieldDefault::Function(path) => path.to_token_stream(),
            };
            quote!(take_or(#reader, &[#stored #(, #aliases)*], #function))
        }
    };
    quote!(#ident: <#ty as __q::PayloadArg>::#call?,)
}

fn key_fn(job: &Job, name: &str, key: &Key) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    let body = match key {
        Key::List(paths) => list_body(job, paths),
        Key::Template(literal, fields) => template_body(job, literal, fields),
    };
    quote! {
        fn #name(&self) -> __q::Option<__q::String> {
            #body
        }
    }
}

/// The values as a JSON array, so that `("a", "b,c")` and `("a,b", "c")` stay two keys.
fn list_body(job: &Job, paths: &[KeyPath]) -> TokenStream {
    let writer = local("k");
    let writes = paths.iter().map(|path| {
        let (ty, value) = (value_type(job, path), value(path));
        quote_spanned!(path.span=> <#ty as __q::KeyPart>::write(#value, &mut #writer);)
    });
    quote! {
        let mut #writer = __q::KeyWriter::new();
        #(#writes)*
        __q::Some(#writer.finish())
    }
}

/// The literal itself goes into `format!`, with the fields as parameters of its own hygiene: so the
/// compiler checks the template and points into the string, also when a `macro_rules!` passed it on.
fn template_body(job: &Job, literal: &LitStr, fields: &[Ident]) -> TokenStream {
    let named: Vec<&Field> = job
        .fields()
        .filter(|field| fields.contains(&field.ident))
        .collect();
    let parameters = named.iter().map(|field| {
        let name = in_template(&field.ident, literal);
        let ty = stored_type(field, quote!(__q::String));
        quote!(#name: &#ty)
    });
    let checks = named.iter().map(|field| {
        let ty = moved_to(literal.span(), stored_type(field, quote!(__q::String)));
        quote!(let _ = <#ty as __q::KeyPart>::write;)
    });
    let idents = named.iter().map(|field| &field.ident);
    quote! {
        #[allow(non_snake_case)]
        fn __key(#(#parameters),*) -> __q::String { ::std::format!(#literal) }
        #(#checks)*
        __q::Some(__key(#(&self.#idents),*))
    }
}

fn in_template(field: &Ident, literal: &LitStr) -> Ident {
    let mut name = field.clone();
    name.set_span(literal.span());
    name
}

/// The same tokens with the same meaning, at another place.
fn moved_to(place: Span, tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let mut moved = Group::new(group.delimiter(), moved_to(place, group.stream()));
                moved.set_span(group.span().located_at(place));
                TokenTree::Group(moved)
            }
            mut other => {
                other.set_span(other.span().located_at(place));
                other
            }
        })
        .collect()
}

fn version_fn(job: &Job, path: &KeyPath) -> TokenStream {
    let (ty, value) = (value_type(job, path), value(path));
    let call = quote_spanned!(path.span=> <#ty as __q::CacheVersion>::version(#value));
    quote! {
        fn cache_version(&self) -> __q::Option<u64> {
            #call
        }
    }
}

/// The type of a key's value, placed at the key, where the mistake is if it cannot be one. What lies inside
/// a field is known to the compiler alone.
fn value_type(job: &Job, path: &KeyPath) -> TokenStream {
    let field = job.fields().find(|field| field.ident == path.field);
    match field {
        Some(field) if path.rest.is_empty() => {
            moved_to(path.span, stored_type(field, quote!(__q::String)))
        }
        _ => quote_spanned!(path.span=> _),
    }
}

/// `&self.order.id`, all of it at the place of the key and of one hygiene: else the compiler would point
/// at the whole attribute.
fn value(KeyPath { field, rest, span }: &KeyPath) -> TokenStream {
    let mut field = field.clone();
    field.set_span(*span);
    quote_spanned!(*span=> &self.#field #(.#rest)*)
}
