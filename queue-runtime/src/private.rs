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
pub use crate::handler::{
    ByClassify, ByDefault, CacheVersion, Classify, Data, DataMap, Field, Inject, IntoJobError, Job,
    JobContext, JobDef, JobError, JobOutput, JobReturn, JobValue, KeyPart, KeyTexts, KeyWriter,
    Need, Probe, Refreshed, RefreshedOutput, Registration, RunCx, RunResult, Source,
    UncachedOutput, Upcast, decode, ended,
};
pub use crate::job::{Backoff, DedupeUntil, OnDuplicate, PayloadArg, PayloadReader, PayloadWriter};
pub use crate::pipeline::enqueue::{Enqueue, EnqueueTarget};
pub use crate::rules::classify::Class;

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
