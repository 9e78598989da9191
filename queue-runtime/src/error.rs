//! Errors, sorted by what a caller would do differently.
//!
//! A stale lease, a duplicate and an empty claim are replies, not errors. A handler's failure is
//! an [`Outcome`](crate::job::Outcome), never one of these.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::job::{InvalidName, JobId, JobState, JobType};

/// Any error as a trait object that may cross threads.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// What a caller can do about a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store cannot be reached or is busy; trying again later can help.
    Unavailable,
    /// This handle was closed; only opening the store again helps.
    Closed,
    /// The caller asked for something that breaks a rule; trying again cannot help.
    InvalidInput,
    /// What is stored breaks a rule; somebody has to look.
    Corrupt,
    /// This store cannot do what was asked.
    Unsupported,
    /// The store's tables are newer or older than this library can serve.
    Schema,
}

/// A store could not do what it was asked; says which operation, on what, and why.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: &'static str,
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
    is_about_values: bool,
}

impl StoreError {
    /// Makes an error of a kind for an operation, such as `claim`.
    pub fn new(kind: StoreErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            operation,
            message: message.into(),
            source: None,
            is_about_values: false,
        }
    }

    /// Says that what a job holds was refused: without that job the same call may succeed.
    #[must_use]
    pub fn about_values(mut self) -> Self {
        self.is_about_values = true;
        self
    }

    /// Whether what a job holds was refused.
    pub fn is_about_values(&self) -> bool {
        self.is_about_values
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The same error for one more caller.
    #[cfg(feature = "postgres")]
    pub(crate) fn again(&self) -> Self {
        Self {
            kind: self.kind,
            operation: self.operation,
            message: self.message.clone(),
            source: self.source.clone(),
            is_about_values: self.is_about_values,
        }
    }

    /// Says it in other words, for the same cause.
    #[cfg(feature = "postgres")]
    pub(crate) fn saying(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// Returns what a caller can do about it.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns the operation that failed, such as `claim`.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// What is wrong, without the operation.
    #[cfg(feature = "postgres")]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Says whether trying again later can help.
    pub fn is_transient(&self) -> bool {
        self.kind == StoreErrorKind::Unavailable
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A payload cannot be stored or read; says where in it and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {rule}")]
pub struct PayloadError {
    /// The place, as a JSON path such as `$.order.lines[3]`.
    pub path: String,
    /// The rule that it breaks.
    pub rule: String,
}

/// A job was not enqueued, and nothing was stored; only after [`Store`](Self::Store) of kind
/// `Unavailable` it may have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The same idempotency key was used for another payload.
    #[error(
        "idempotency key already used by job {existing} for another payload; \
         these fields differ: {}. Use a new key for a new request", fields.join(", ")
    )]
    IdempotencyConflict {
        /// The job that the key belongs to.
        existing: JobId,
        /// The names of the payload fields that differ; never their values.
        fields: Vec<String>,
    },
    /// A name breaks its rule.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The payload cannot be stored.
    #[error("payload of job type {job_type:?} at {}: {}", source.path, source.rule)]
    InvalidPayload {
        /// The kind of job.
        job_type: String,
        /// Where and why.
        source: PayloadError,
    },
    /// The payload is larger than allowed.
    #[error(
        "payload of job type {job_type:?} has {size} bytes: at most {limit} are allowed. \
         Store large data elsewhere and pass its key"
    )]
    PayloadTooLarge {
        /// The kind of job.
        job_type: String,
        /// The size of the JSON text in bytes.
        size: usize,
        /// The largest size in bytes.
        limit: usize,
    },
    /// A dedupe, idempotency or cache key breaks its rule.
    #[error("{what} {value:?}: {rule}")]
    InvalidKey {
        /// Which key.
        what: &'static str,
        /// The value, cut after 80 characters.
        value: String,
        /// The rule.
        rule: String,
    },
    /// A number or a time is outside its bounds.
    #[error("{what} {value}: {rule}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// The value.
        value: String,
        /// The bounds.
        rule: String,
    },
    /// The id that the caller gave belongs to another job; nothing was stored.
    #[error("id {id} belongs to another job. Repeat an enqueue with the payload it had")]
    IdTaken {
        /// The id.
        id: JobId,
    },
    /// The transaction belongs to another database than the queue.
    #[error(
        "the transaction belongs to another database than the queue ({rule}). \
         Open the queue on the same database, or enqueue without `in_tx`"
    )]
    OtherDatabase {
        /// How that was noticed.
        rule: String,
    },
    /// One item of a bulk is refused, so nothing of the bulk was stored.
    #[error("item {index}: {source}")]
    Item {
        /// The position in the bulk, from 0.
        index: usize,
        /// What is wrong with it.
        source: Box<EnqueueError>,
    },
    /// The store could not store it. If the kind is `Unavailable` the outcome may be unknown.
    /// Enqueueing again is safe under the same id (`Enqueue::id`) or an idempotency key. A dedupe
    /// key is not enough: once the first job has ended, the repeat is a second one.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A queue could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is not one of a store we know.
    #[error("store address {url:?}: {rule}")]
    InvalidUrl {
        /// The address, without its password.
        url: String,
        /// The rule.
        rule: String,
    },
    /// An environment variable is missing or unreadable.
    #[error("environment variable {name}: {rule}")]
    Environment {
        /// The name of the variable.
        name: &'static str,
        /// What is wrong with it.
        rule: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A handler could not tie its own transaction to its job; nothing was written about the job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// The attempt does not hold the job any more.
    #[error("job {id}: this attempt has lost its lease, somebody else may run the job. Roll back")]
    LeaseLost {
        /// The job.
        id: JobId,
    },
    /// The transaction belongs to another database than the queue.
    #[error(
        "the transaction belongs to another database than the queue ({rule}). \
         Use one on the queue's own database, or compare `ctx.fence()` with a number there"
    )]
    OtherDatabase {
        /// How that was noticed.
        rule: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl FenceError {
    /// Refuses what only means something inside a transaction.
    pub(crate) fn without_transaction(operation: &'static str) -> Self {
        Self::Store(StoreError::new(
            StoreErrorKind::InvalidInput,
            operation,
            "the connection has no open transaction, so this would be over before the writes that \
             go with it. Begin one, and commit it after them",
        ))
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl EnqueueError {
    /// An enqueue looks at a transaction as a fence does, but has no lease to lose.
    pub(crate) fn of_fence(error: FenceError) -> Self {
        match error {
            FenceError::OtherDatabase { rule } => Self::OtherDatabase { rule },
            FenceError::Store(error) => Self::Store(error),
            lost @ FenceError::LeaseLost { .. } => Self::Store(StoreError::new(
                StoreErrorKind::Corrupt,
                "insert",
                lost.to_string(),
            )),
        }
    }
}

/// An operation on a single stored job could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobActionError {
    /// No job has this id.
    #[error("job {0}: not found. It may have been removed by retention")]
    NotFound(JobId),
    /// A final job cannot be called off.
    #[error("job {id}: already final ({state}), so it cannot be cancelled")]
    AlreadyFinal {
        /// The job.
        id: JobId,
        /// Where it stands.
        state: JobState,
    },
    /// Only a dead letter or a cancelled job can be replayed.
    #[error("job {id} is {state}: only a dead letter or a cancelled job can be replayed")]
    NotReplayable {
        /// The job.
        id: JobId,
        /// Where it stands.
        state: JobState,
    },
    /// The new payload is one of another job type; the job stays as it is.
    #[error(
        "job {id} is of type {:?}: a payload of job type {edited:?} cannot be put in place of its own",
        stored.as_str()
    )]
    OtherType {
        /// The job that should be replayed.
        id: JobId,
        /// Its type.
        stored: JobType,
        /// The name of the type that the new payload belongs to.
        edited: &'static str,
    },
    /// The new payload cannot be stored; the job stays as it is.
    #[error("job {id} stays as it is: {source}")]
    InvalidEdit {
        /// The job that should be replayed.
        id: JobId,
        /// What is wrong with the payload, or with a key that follows from it.
        source: EnqueueError,
    },
    /// A live job holds the dedupe key; the dead letter stays where it is.
    #[error("job {id}: live job {live} holds the same dedupe key. Wait for it, or cancel it first")]
    Duplicate {
        /// The job that should be replayed.
        id: JobId,
        /// The job that holds the key.
        live: JobId,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A worker cannot be built as it was configured; every fault is listed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker cannot start:\n{}", shown(faults))]
pub struct BuildError {
    /// What is wrong, one sentence each, with the values and the line to write instead.
    pub faults: Vec<String>,
}

/// The faults, one a line, and how many more there are.
fn shown(faults: &[String]) -> String {
    const SHOWN_MAX: usize = 20;
    let mut lines: Vec<_> = faults
        .iter()
        .take(SHOWN_MAX)
        .map(|f| format!("  - {f}"))
        .collect();
    if faults.len() > SHOWN_MAX {
        lines.push(format!("  - and {} more", faults.len() - SHOWN_MAX));
    }
    lines.join("\n")
}

/// A worker ended because it could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It was configured wrongly.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The store answers with something that waiting cannot cure.
    #[error("worker loop {name:?} ended: {source}")]
    Store {
        /// Which loop.
        name: &'static str,
        /// Why.
        source: StoreError,
    },
    /// A loop of the worker panicked; a bug in this library.
    #[error("worker loop {name:?} panicked: {message}")]
    Panicked {
        /// Which loop.
        name: &'static str,
        /// The panic's message.
        message: String,
    },
    /// Attempts were still running when the grace budget was used up, and did not stop.
    ///
    /// They block their threads, and a runtime that is dropped waits for those: a `main` that only
    /// returns this error ends when they do. To end at once, call `std::process::exit(1)`.
    #[error("{running} attempts did not stop within {grace:?} after they were cancelled")]
    Stuck {
        /// How many.
        running: usize,
        /// The grace budget.
        grace: Duration,
    },
}
