//! A stored payload to typed arguments: brought to the job's schema first, then decoded.
//!
//! Everything that reads stored payloads comes through here, so that a payload means the same to a
//! worker, to a test and to whoever looks at a dead letter.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::def::{Job, JobDef};
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
pub(super) fn read<J: Job>(payload: &str, schema: u32) -> Result<J, PayloadError> {
    let def = J::DEF;
    let decoded = if schema == def.schema {
        J::decode(&PayloadReader::new(payload)?)
    } else {
        J::decode(&brought_to(def, payload, schema)?.reader())
    };
    decoded.map_err(|error| with_type(error, def))
}

/// The fields as the job's own schema has them.
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
    let is_at_fault = |name: &str| match error.path.strip_prefix("$.") {
        Some(path) => path
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])),
        None => error.rule == format!("missing field `{name}`"),
    };
    if let Some(field) = def.fields.iter().find(|field| is_at_fault(field.name)) {
        let (name, text) = (field.name, field.type_text);
        error.rule.push_str(&format!(" (field `{name}: {text}`)"));
    }
    error
}

/// What becomes of an attempt whose payload cannot be read.
pub(crate) fn undecodable(claimed: &Claimed, def: &JobDef, error: &PayloadError) -> JobError {
    let (job_type, stored, read) = (&claimed.job_type, claimed.payload_schema, def.schema);
    let schemas = match stored == read {
        true => format!("schema {stored}"),
        false => format!("stored under schema {stored}, this build reads {read}"),
    };
    JobError::undecodable(format!(
        "decode payload of job type \"{job_type}\" ({schemas}): {error}"
    ))
}
