//! A stored payload to typed arguments: brought to the job's schema first, then decoded.
//!
//! Everything that reads stored payloads comes through here, so that a payload means the same to a
//! worker, to a test and to whoever looks at a dead letter.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::context::RunCx;
use super::def::{Field, Job, JobDef};
use super::error::JobError;
use crate::error::PayloadError;
use crate::job::{Claimed, PayloadFields, PayloadReader};
use crate::rules::error_text::panic_message;

/// Changes a payload from one schema to the next, before it is read.
///
/// It is called once per step with the schema that the fields have then: a payload stored under
/// schema 1 that a job of schema 3 reads goes through `upcast(1, ..)` and then `upcast(2, ..)`.
/// Whatever the error is, it is final: the job becomes a dead letter that keeps the payload as it
/// was stored. A panic counts as an error.
pub type Upcast = fn(from: u32, fields: &mut PayloadFields) -> Result<(), JobError>;

/// Reads a payload that was stored under `schema`.
///
/// Written out once for each job of a program, so whatever is the same for all of them is elsewhere.
pub(super) fn read<J: Job>(payload: &str, schema: u32) -> Result<J, PayloadError> {
    let reader = opened(J::DEF, payload, schema)?;
    // A `Deserialize` of the user's own may panic; nothing of it is kept then.
    match catch_unwind(AssertUnwindSafe(|| J::decode(&reader))) {
        Ok(Ok(job)) => Ok(job),
        Ok(Err(error)) => Err(with_type(error, J::DEF)),
        Err(panic) => Err(panicked(panic)),
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> PayloadError {
    PayloadError {
        path: "$".to_owned(),
        rule: format!("panicked while it was read: {}", panic_message(panic)),
    }
}

/// The payload of an attempt; one that cannot be read is never tried again.
///
/// # Errors
/// A [`JobError`] that names the place in the payload, the job type and the schemas.
pub fn decode<J: Job>(cx: &RunCx) -> Result<J, JobError> {
    let claimed = cx.context().claimed();
    match J::from_stored(&claimed.payload, claimed.payload_schema) {
        Ok(job) => Ok(job),
        Err(error) => Err(undecodable(claimed, J::DEF, &error)),
    }
}

/// The fields of a payload, as the job's own schema has them.
fn opened<'p>(
    def: &JobDef,
    payload: &'p str,
    schema: u32,
) -> Result<PayloadReader<'p>, PayloadError> {
    match schema == def.schema {
        true => PayloadReader::new(payload),
        false => Ok(brought_to(def, payload, schema)?.into_reader()),
    }
}

/// The fields of a payload that was stored under another schema, as the job's own has them.
fn brought_to(def: &JobDef, payload: &str, schema: u32) -> Result<PayloadFields, PayloadError> {
    if schema > def.schema {
        return Err(PayloadError {
            path: "$".to_owned(),
            rule: format!(
                "stored under schema {schema}, but this program reads at most {}",
                def.schema
            ),
        });
    }
    let mut fields = PayloadFields::new(payload)?;
    if let Some(upcast) = def.upcast {
        for from in schema..def.schema {
            step(upcast, from, &mut fields)?;
        }
    }
    Ok(fields)
}

fn step(upcast: Upcast, from: u32, fields: &mut PayloadFields) -> Result<(), PayloadError> {
    // After a panic the fields are thrown away.
    let (path, said) = match catch_unwind(AssertUnwindSafe(|| upcast(from, fields))) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => match error.payload_error() {
            Some(inner) => (inner.path.clone(), inner.rule.clone()),
            None => ("$".to_owned(), error.to_string()),
        },
        Err(panic) => (
            "$".to_owned(),
            format!("panicked: {}", panic_message(panic)),
        ),
    };
    let rule = format!("upcast from schema {from} to {}: {said}", from + 1);
    Err(PayloadError { path, rule })
}

/// Adds the type of the field that could not be read, as it is written in the source.
fn with_type(mut error: PayloadError, def: &JobDef) -> PayloadError {
    let is_at = |name: &str| match error.path.strip_prefix("$.") {
        Some(path) => path
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])),
        None => error.rule == format!("missing field `{name}`"),
    };
    let is_at_fault =
        |field: &&Field| is_at(field.name) || field.aliases.iter().any(|name| is_at(name));
    if let Some(field) = def.fields.iter().find(is_at_fault) {
        let (name, text) = (field.name, field.type_text);
        error.rule.push_str(&format!(" (field `{name}: {text}`)"));
    }
    error
}

/// What becomes of an attempt whose payload cannot be read.
fn undecodable(claimed: &Claimed, def: &JobDef, error: &PayloadError) -> JobError {
    let (job_type, stored, read) = (&claimed.job_type, claimed.payload_schema, def.schema);
    let schemas = match stored == read {
        true => format!("schema {stored}"),
        false => format!("stored under schema {stored}, this build reads {read}"),
    };
    JobError::undecodable(format!(
        "decode payload of job type \"{job_type}\" ({schemas}): {error}"
    ))
}
