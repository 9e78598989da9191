//! The words of the system as plain data: what is enqueued, what is stored, what a run came to,
//! what the store is told to do about it.
//!
//! Nothing here decides, reads a clock or touches a store; every other layer speaks in these
//! types.

mod event;
mod walk;
mod ids;
mod place;
mod fault;
mod fields;
mod outcome;
mod payload;
mod contract;
pub mod shape;
mod record;
mod settlement;
mod spec;
mod verified;

pub use contract::Contract;
pub use event::JobEvent;
pub use fields::PayloadFields;
pub(crate) use ids::shorten;
#[cfg(feature = "sqlite")]
pub(crate) use ids::shorten_to;
pub use ids::{InvalidName, JobId, JobType, LeaseToken, QueueName, WorkerId};
pub use outcome::{JobResult, Outcome, OutcomeKind};
pub use payload::{PayloadArg, PayloadReader, PayloadWriter};
pub use record::{Attempt, Claimed, JobRecord, JobState, Lease};
pub use settlement::{Change, DeadReason, Settled, Settlement};
pub use spec::{
    Backoff, CacheKey, Dedupe, DedupeUntil, Due, Fingerprint, Idempotency, NewJob, OnDuplicate,
};
pub use verified::{About, Finding, Invariant, Verified};
pub use walk::PAYLOAD_DEPTH_MAX;
pub(crate) use walk::TOO_DEEP;
