//! What a producer asks for: one new job with its policy, ready for a store to insert.

use std::time::Duration;

use super::ids::{JobId, JobType, QueueName};
use crate::time::Timestamp;

/// One job as a store inserts it. Everything in it has been validated.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// The id, made by the producer.
    pub id: JobId,
    /// The stable name of the kind of job.
    pub job_type: JobType,
    /// The queue it waits in.
    pub queue: QueueName,
    /// The typed arguments as a JSON object, opaque to the store.
    pub payload: String,
    /// The number of the payload's shape, from 1.
    pub payload_schema: u32,
    /// Higher runs first within a queue; -100 to 100.
    pub priority: i16,
    /// How many runs may start before the job becomes a dead letter; at least 1.
    pub max_attempts: u32,
    /// When it may first run, on the store's clock.
    pub due: Due,
    /// How long after the insert it may still be tried; `None` for ever.
    pub deadline: Option<Duration>,
    /// At most one live job of this type and key.
    pub dedupe: Option<Dedupe>,
    /// One caller request gives one job.
    pub idempotency: Option<Idempotency>,
    /// The cache entry that this job refreshes, and the version of the data it was made for.
    pub cache: Option<CacheKey>,
    /// The W3C trace context of the producer, if any.
    pub trace_context: Option<String>,
}

/// When a job may first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// This long after the insert.
    After(Duration),
    /// At this instant; one that has passed means at once.
    At(Timestamp),
}

impl Due {
    /// Returns the instant for an insert that happens at `now`.
    pub fn run_at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::After(delay) => now.saturating_add(delay),
            Self::At(at) => at.max(now),
        }
    }

    /// Says whether a job that is inserted at `now` may run at once.
    pub(crate) fn is_at_once(self, now: Timestamp) -> bool {
        self.run_at(now) <= now
    }
}

/// The delay before a retry, as a formula of the attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// The same delay each time.
    Fixed {
        /// The delay.
        delay: Duration,
        /// How far it is spread, in percent of itself to either side; 0 to 100.
        jitter_percent: u8,
    },
    /// `base`, `2 × base`, `4 × base` … up to `max`.
    Exponential {
        /// The delay after the first attempt.
        base: Duration,
        /// The longest delay.
        max: Duration,
        /// How far it is spread, in percent of itself to either side; 0 to 100.
        jitter_percent: u8,
    },
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Backoff {
    /// `exponential(2s, max = 5m, jitter = 20%)`.
    pub const DEFAULT: Self = Self::Exponential {
        base: Duration::from_secs(2),
        max: Duration::from_mins(5),
        jitter_percent: 20,
    };
}

/// Asks for at most one live job of a type and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// The key, 1 to 1,024 bytes; its scope is the job type.
    pub key: String,
    /// How long the key is held.
    pub until: DedupeUntil,
    /// What happens to the newcomer.
    pub on_duplicate: OnDuplicate,
}

/// How long a job holds its dedupe key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DedupeUntil {
    /// Until the job is final.
    #[default]
    Finished,
    /// Until its first attempt starts; a retry does not take the key again.
    Started,
    /// For this long after the insert, whatever becomes of the job.
    Window(Duration),
}

/// What an enqueue does when a live job already holds the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// Keeps the existing job and drops the newcomer. A change made while the existing job
    /// already runs can be missed; [`Rerun`](Self::Rerun) does not miss it.
    #[default]
    Keep,
    /// Rewrites the waiting job's payload in place; acts as [`Rerun`](Self::Rerun) on a running
    /// one.
    Replace,
    /// Keeps one job waiting behind the running one. Under a dedupe window
    /// ([`DedupeUntil::Window`]) nothing is stored behind: the newcomer is answered with the job
    /// that exists until the window has passed, as under [`Keep`](Self::Keep).
    Rerun,
}

/// Asks that one caller request gives one job, remembered for a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key, 1 to 1,024 bytes; its scope is the job type.
    pub key: String,
    /// What the request carried, to tell a repeat from another request under the same key.
    pub fingerprint: Fingerprint,
    /// How long the key answers, counted from the insert; never ends before the job does.
    pub window: Duration,
}

/// The request behind an idempotency key: one digest per top-level payload field, in field
/// order, so that a conflict can name the fields that differ without keeping their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Wraps the stored form: a JSON object from field name to digest, sorted by name.
    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which cache entry a job refreshes, and for which version of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    /// The key of the entry, such as `user:42`.
    pub key: String,
    /// The version of the data that the job was made for; at most `i64::MAX`.
    pub version: u64,
}
