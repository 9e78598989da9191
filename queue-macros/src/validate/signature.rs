//! Judges the function: what kind of function it is, and each of its arguments.
//!
//! A job is a free, safe, async function with concrete, owned types: it is stored under a name and called
//! later by a worker that knows only the stored payload.

use std::collections::HashSet;

use syn::{GenericParam, ReturnType, Safety, Type};

use super::{argument, field_options};
use crate::errors::Errors;
use crate::model::Arg;
use crate::parse::Function;
use crate::parse::function::peel;

/// What the function gives to the model.
pub(crate) struct Signature {
    pub(crate) arguments: Vec<Arg>,
    pub(crate) output: Option<Type>,
    /// False if no job can be made of the function.
    pub(crate) usable: bool,
    /// False if an argument has no name; then `arguments` lacks it.
    pub(crate) complete: bool,
}

/// Reads the signature, and reports every reason why it cannot be a job's.
pub(crate) fn signature(function: &Function, errors: &mut Errors) -> Signature {
    if let Some(second) = function.repeated.first() {
        errors.at(
            second,
            "`#[job]` stands on this function more than once; keep one of them, with all the options",
        );
    }
    let before = errors.count();
    qualifiers(function, errors);
    generics(function, errors);
    let output = output(function, errors);
    let sound = errors.count() == before;

    // With a lifetime parameter the borrowed arguments have been reported already.
    let lifetimes_reported = function.sig.generics.lifetimes().next().is_some();
    let read: Vec<_> = function
        .arguments
        .iter()
        .map(|written| argument::argument(written, lifetimes_reported, errors))
        .collect();
    let storable = read.iter().all(|read| read.usable);
    let complete = read.iter().all(|read| read.arg.is_some());
    let arguments: Vec<Arg> = read.into_iter().filter_map(|read| read.arg).collect();
    field_options::stored_names(&arguments, errors);
    let usable = sound && storable && names_differ(&arguments);
    Signature {
        arguments,
        output,
        usable,
        complete,
    }
}

fn qualifiers(function: &Function, errors: &mut Errors) {
    let sig = &function.sig;
    if let Some(receiver) = &function.receiver {
        errors.at(
            receiver,
            "a job is a free function and has no `self`; take what it needs as arguments, shared state as `Data<..>`",
        );
    }
    if sig.asyncness.is_none() {
        errors.at(
            sig.fn_token,
            "a `#[job]` function is async; write `async fn`, and put blocking work into `tokio::task::spawn_blocking`",
        );
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.at(
            token,
            "a `#[job]` function is safe to call; put `unsafe { .. }` into its body",
        );
    }
    if let Some(abi) = &sig.abi {
        errors.at(
            abi,
            "a `#[job]` function has no foreign ABI; write a plain `async fn`",
        );
    }
}

fn generics(function: &Function, errors: &mut Errors) {
    let generics = &function.sig.generics;
    // One error for the whole list: its parts are one mistake.
    match generics.params.first() {
        Some(GenericParam::Lifetime(lifetime)) => errors.at(
            lifetime,
            "a job has no lifetime parameters, since its payload is stored; take owned arguments, or `&str` without a lifetime",
        ),
        Some(param) => errors.at(
            param,
            "a job has no generic parameters, since it is stored under one name; write a concrete type",
        ),
        None => {
            if let Some(clause) = &generics.where_clause {
                errors.at(clause, "a job has no generic parameters, so there is nothing to bound; remove the `where`");
            }
        }
    }
}

fn output(function: &Function, errors: &mut Errors) -> Option<Type> {
    let ReturnType::Type(_, ty) = &function.sig.output else {
        return None;
    };
    let ty = peel(ty);
    if let Type::ImplTrait(opaque) = ty {
        errors.at(
            opaque,
            "a `#[job]` function names its return type; write `Result<T, E>`",
        );
    }
    Some(ty.clone())
}

/// Whether all names differ. The compiler reports it if not, so nothing is said here.
fn names_differ(arguments: &[Arg]) -> bool {
    let mut seen = HashSet::new();
    arguments.iter().all(|argument| match argument {
        Arg::Payload(field) => seen.insert(field.ident.to_string()),
        Arg::Injected(injected) => injected.name == "_" || seen.insert(injected.name.clone()),
    })
}
