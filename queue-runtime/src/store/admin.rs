//! What operators and producers ask of a store about jobs that exist.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::job::{Attempt, JobId, JobRecord, JobState, JobType};
use crate::time::Timestamp;

/// Looking at jobs, calling them off, replaying them, and keeping history short.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Returns a job in any state, or `None` if there is none of this id (any more). Fails as
    /// corrupt, naming the column, if a stored value cannot be read.
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError>;

    /// Returns at most `limit` jobs of a final state, the one that became final last first, and
    /// of equal times the one with the higher id. `before` names the place where the page before
    /// ended (its last job's `finished_at` and id). A state that is not final has none. A job
    /// whose stored values cannot be read is left out, with an error in the log.
    async fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, StoreError>;

    /// Returns a job's attempts, oldest first; empty for an unknown job.
    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError>;

    /// Calls a job off: a queued one at once, a running one through its next heartbeat.
    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError>;

    /// Makes a dead letter or a cancelled job run again, due now, with its counters at zero and
    /// its id kept; `as_new` also raises its generation, so remembered steps do not count. Its
    /// idempotency key answers for it again, unless the key's window has passed and it was
    /// pruned: then a new request under the key makes a new job.
    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError>;

    /// Counts the jobs in each state, in one snapshot.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Counts the waiting jobs of every type that is not in `known`, sorted by type.
    async fn unknown_types(&self, known: &[JobType]) -> Result<Vec<(JobType, u64)>, StoreError>;

    /// Removes at most `limit` final jobs (with their attempts) that are older than their
    /// retention, at most `limit` idempotency keys whose window has passed, and at most `limit`
    /// dedupe windows that have passed; of each kind the oldest first.
    ///
    /// Less than `limit` of a kind means that none of it is left; a caller who wants everything
    /// gone asks again while one kind of the answer reaches the limit. A limit of zero removes
    /// nothing.
    async fn prune(&self, retention: &Retention, limit: usize) -> Result<Pruned, StoreError>;
}

/// The answer to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelling {
    /// It was waiting and is cancelled.
    Cancelled,
    /// It runs; its worker is told at the next heartbeat.
    Requested,
    /// It is final already; nothing was changed.
    AlreadyFinal(JobState),
    /// There is no such job; nothing was changed.
    NotFound,
}

/// The answer to a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaying {
    /// It waits again.
    Replayed,
    /// A live job holds its dedupe key; nothing was changed.
    Duplicate(JobId),
    /// It is neither a dead letter nor cancelled; nothing was changed.
    NotReplayable(JobState),
    /// There is no such job.
    NotFound,
}

/// How many jobs stand in each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Waiting, whether due or not.
    pub queued: u64,
    /// Under a lease.
    pub processing: u64,
    /// Finished well.
    pub done: u64,
    /// Dead letters.
    pub dead_letter: u64,
    /// Called off.
    pub cancelled: u64,
}

impl Counts {
    /// Returns the number in one state.
    pub const fn of(&self, state: JobState) -> u64 {
        match state {
            JobState::Queued => self.queued,
            JobState::Processing => self.processing,
            JobState::Done => self.done,
            JobState::DeadLetter => self.dead_letter,
            JobState::Cancelled => self.cancelled,
        }
    }

    /// Returns the number in one state, to change it.
    pub const fn of_mut(&mut self, state: JobState) -> &mut u64 {
        match state {
            JobState::Queued => &mut self.queued,
            JobState::Processing => &mut self.processing,
            JobState::Done => &mut self.done,
            JobState::DeadLetter => &mut self.dead_letter,
            JobState::Cancelled => &mut self.cancelled,
        }
    }

    /// Returns the number in all states.
    pub const fn total(&self) -> u64 {
        self.queued + self.processing + self.done + self.dead_letter + self.cancelled
    }
}

/// How long final jobs are kept, counted from when they became final.
///
/// ```
/// use std::time::Duration;
///
/// use queue_runtime::{Queue, Retention, Worker};
///
/// let retention = Retention {
///     done: Duration::from_hours(24),
///     ..Retention::default()
/// };
/// let queue = Queue::in_memory();
/// let worker = Worker::builder(&queue).retention(retention);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Jobs that finished well; 7 days.
    pub done: Duration,
    /// Jobs that were called off; 7 days.
    pub cancelled: Duration,
    /// Dead letters; 90 days.
    pub dead_letter: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            done: Duration::from_hours(7 * 24),
            cancelled: Duration::from_hours(7 * 24),
            dead_letter: Duration::from_hours(90 * 24),
        }
    }
}

impl Retention {
    /// Returns how long a job of a final state is kept; `None` for a live one.
    pub const fn of(&self, state: JobState) -> Option<Duration> {
        match state {
            JobState::Done => Some(self.done),
            JobState::Cancelled => Some(self.cancelled),
            JobState::DeadLetter => Some(self.dead_letter),
            JobState::Queued | JobState::Processing => None,
        }
    }
}

/// What a prune removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Final jobs.
    pub jobs: u64,
    /// Idempotency keys.
    pub idempotency_keys: u64,
    /// Dedupe windows.
    pub dedupe_windows: u64,
}
