//! What a job's function touches: its definition, arguments, errors, results and context.
//!
//! The `#[job]` attribute writes code against these types; a job can also be declared by hand
//! with them. Nothing here knows when or how often a handler runs.

mod permanent;
mod classify;
mod context;
mod data;
mod def;
mod error;
mod keys;
mod returns;
mod stored;

pub use classify::{ByClassify, ByDefault, Classify, Probe, StatusError, recognise};
pub(crate) use context::{AttemptStop, StopReason};
pub use context::{JobContext, RunCx};
pub use data::{Data, DataMap, Inject};
pub use def::{
    CheckFn, Field, Job, JobDef, KeyTexts, Need, Registration, RunFn, RunResult, Source,
};
pub use error::{IntoJobError, JobError, JobResultExt};
pub use keys::{CacheVersion, KeyPart, KeyWriter};
pub use permanent::Permanent;
pub use returns::{
    JobOutput, JobReturn, JobValue, Refreshed, RefreshedOutput, UncachedOutput, ended,
};
pub use stored::{Upcast, decode};
