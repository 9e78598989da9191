//! Judges what was written and builds the model of a valid job.
//!
//! Every rule of the attribute lives here, with the words that explain it; no tokens are generated. A wrong
//! option falls back to its default, so that the job still exists and only the option's own error shows.
//! A signature that no job can have gives no model at all.

mod chosen;
mod values;
mod policy;
mod signature;
mod argument;
mod field_options;
mod keys;
mod together;

use proc_macro2::{Ident, Span};
use quote::format_ident;
use syn::ext::IdentExt;
use syn::{GenericArgument, Path, PathArguments, PathSegment, Type};

use crate::errors::Errors;
use crate::model::{Arg, Job};
use crate::parse::{Function, Written};
use chosen::Chosen;

/// Builds the job, or `None` if the function cannot be one. All mistakes are added to `errors`.
pub(crate) fn job(written: &[Written], function: &Function, errors: &mut Errors) -> Option<Job> {
    let chosen = Chosen::new(written, errors);
    let policy = policy::policy(&chosen, errors);
    let name = policy::name(&chosen, &function.sig.ident, errors);
    let runtime = chosen
        .value("crate")
        .and_then(|value| values::absolute_path(value, errors));
    let retry_if = chosen
        .value("retry_if")
        .and_then(|value| values::function(value, errors));
    let upcast = chosen
        .value("upcast")
        .and_then(|value| values::function(value, errors));
    let derives = chosen
        .value("derive")
        .and_then(|value| values::paths(value, errors));
    let given = chosen
        .value("payload")
        .and_then(|value| values::ident(value, errors));

    let signature = signature::signature(function, errors);
    let mut keys = keys::keys(&chosen, &signature, errors);
    together::together(&chosen, &policy, &mut keys, &signature, errors);
    let payload = payload_name(given, &function.sig.ident, &signature.arguments, errors);
    if !signature.usable {
        return None;
    }
    Some(Job {
        runtime: runtime.unwrap_or_else(default_runtime),
        function: function.sig.ident.clone(),
        vis: function.vis.clone(),
        cfgs: function
            .attrs
            .iter()
            .filter(|attr| attr.path().is_ident("cfg"))
            .cloned()
            .collect(),
        payload: payload?,
        derives: derives.unwrap_or_default(),
        arguments: signature.arguments,
        returns_refreshed: signature.output.as_ref().is_some_and(is_refreshed),
        output: signature.output,
        name,
        policy,
        keys,
        retry_if,
        upcast,
    })
}

/// `::queue_runtime`
pub(crate) fn default_runtime() -> Path {
    let segment = PathSegment {
        ident: Ident::new("queue_runtime", Span::call_site()),
        arguments: PathArguments::None,
    };
    Path {
        leading_colon: Some(Default::default()),
        segments: std::iter::once(segment).collect(),
    }
}

/// Whether `output` is called `Refreshed`, or is a result of what is.
fn is_refreshed(output: &Type) -> bool {
    argument::last_segment(output).is_some_and(|last| {
        last.ident == "Refreshed"
            || match &last.arguments {
                PathArguments::AngleBracketed(types) => match types.args.first() {
                    Some(GenericArgument::Type(value)) => argument::last_segment(value)
                        .is_some_and(|value| value.ident == "Refreshed"),
                    _ => false,
                },
                _ => false,
            }
    })
}

/// The payload struct's name: the given one, or the function's with `Job` behind it.
fn payload_name(
    given: Option<Ident>,
    function: &Ident,
    arguments: &[Arg],
    errors: &mut Errors,
) -> Option<Ident> {
    let name =
        given.unwrap_or_else(|| format_ident!("{}", suffixed(function), span = function.span()));
    let clash = arguments.iter().any(|argument| {
        let ty = match argument {
            Arg::Payload(field) => &field.written,
            Arg::Injected(injected) => &injected.ty,
        };
        argument::last_segment(ty).is_some_and(|segment| segment.ident == name)
    });
    if clash {
        errors.at(&name, format!(
            "the payload struct `{name}` has the name of an argument's type; give it another, as in `payload = {name}Payload`"
        ));
        return None;
    }
    if name == *function {
        errors.at(&name, format!(
            "the payload struct would have the function's own name `{name}`; give it another, as in `payload = {name}Payload`"
        ));
        return None;
    }
    Some(name)
}

/// `send_welcome` becomes `SendWelcomeJob`, `cleanup_job` becomes `CleanupJob`.
fn suffixed(function: &Ident) -> String {
    let mut name = String::new();
    for word in function.unraw().to_string().split('_') {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(letters.as_str());
    }
    if !name.ends_with("Job") {
        name.push_str("Job");
    }
    // `_2fa` keeps its underscore, since no name starts with a digit.
    let starts_with_digit = name.starts_with(|c: char| c.is_ascii_digit());
    if starts_with_digit {
        name.insert(0, '_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_named_after_the_function() {
        #[track_caller]
        fn check(function: &str, expected: &str) {
            let ident: Ident = syn::parse_str(function).expect("the case is an identifier");
            assert_eq!(suffixed(&ident), expected);
        }
        check("send_welcome", "SendWelcomeJob");
        check("cleanup_job", "CleanupJob");
        check("job", "Job");
        check("send_2fa_code", "Send2faCodeJob");
        check("r#match", "MatchJob");
        check("_quiet", "QuietJob");
        check("_2fa", "_2faJob");
    }
}
