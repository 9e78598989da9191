//! The names that `#[job]` writes into a program. Not for use by hand: anything here may change
//! with any version.

pub use std::boxed::Box;
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{self, Err, Ok};
pub use std::string::String;
pub use std::time::Duration;
pub use std::vec::Vec;

pub use futures_util::future::BoxFuture;
pub use inventory;

pub use crate::error::PayloadError;
use crate::handler::undecodable;
pub use crate::handler::{
    ByClassify, ByDefault, CacheVersion, Classify, Data, DataMap, Field, Inject, IntoJobError, Job,
    JobContext, JobDef, JobError, JobOutput, JobReturn, JobValue, KeyPart, KeyTexts, KeyWriter,
    Need, Probe, Refreshed, RefreshedOutput, Registration, RunCx, RunResult, Source, Upcast,
};
pub use crate::job::{Backoff, DedupeUntil, OnDuplicate, PayloadArg, PayloadReader, PayloadWriter};
pub use crate::pipeline::enqueue::{Enqueue, EnqueueTarget};
pub use crate::rules::classify::Class;

/// Reads the payload of an attempt; one that cannot be read is never tried again.
///
/// # Errors
/// A [`JobError`] that names the place in the payload, the job type and the schemas.
pub fn decode<J: Job>(cx: &RunCx) -> Result<J, JobError> {
    let claimed = cx.context().claimed();
    J::from_stored(&claimed.payload, claimed.payload_schema)
        .map_err(|error| undecodable(claimed, J::DEF, &error))
}

/// Says whether a payload that was stored under a schema is read.
///
/// # Errors
/// What the job's decoder says against it.
pub fn check<J: Job>(payload: &str, schema: u32) -> Result<(), PayloadError> {
    J::from_stored(payload, schema).map(drop)
}

/// Generated code calls the function of the version it was written for, so that a mismatch of
/// the two crates is one error that says so.
pub const fn abi_1() {}
