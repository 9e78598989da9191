//! What operators and producers ask of a store about jobs that exist.

mod edit;
mod waiting;

use std::time::Duration;

use async_trait::async_trait;

pub use self::edit::{Edit, EditedJob};
pub use self::waiting::{UNREAD_LANES_MAX, UNREAD_MAX, Unread, Waiting};

use crate::error::StoreError;
use crate::job::{Attempt, JobId, JobRecord, JobState, JobType, QueueName, Verified};
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

    /// Replays a job with another payload, in one step: either both happen or neither.
    ///
    /// The payload and its schema become those of the edit; a [typed](EditedJob) one also says
    /// which types it is for, and sets the dedupe key that the job holds and the cache entry that
    /// it refreshes, whose version is announced as by an insert. Everything else is as after a
    /// [`replay`](Self::replay): also the idempotency key, which answers for the request as its
    /// caller made it. Windows of dedupe keys belong to inserts, and are neither asked nor opened.
    async fn replay_with(
        &self,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError>;

    /// Counts the jobs in each state, in one snapshot.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Counts the waiting jobs of these queues that a program leaves for others: of every type that
    /// is not in `known`, or of a payload schema above the highest that stands there with it. Sorted
    /// by type and schema. Jobs that wait behind their dedupe key are not counted yet.
    ///
    /// Bounded, so that workers may ask now and then: of each queue, type and schema at most
    /// [`UNREAD_MAX`] jobs are counted, and of those with jobs to count at most
    /// [`UNREAD_LANES_MAX`], those of each queue in the order of types and schemas. What is known
    /// takes no part in that bound.
    async fn unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError>;

    /// Counts what may still have to be decoded by some program, live jobs and dead letters, by
    /// type, queue and payload schema and sorted by them, in one snapshot. Done and cancelled jobs
    /// are left out.
    ///
    /// Locks nothing, and walks over all live jobs and dead letters: a question before a deploy,
    /// not one for every minute. A type, queue or schema that cannot be read is left out, with
    /// an error in the log.
    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError>;

    /// Returns at most `count` of the jobs that [`waiting`](Self::waiting) counts for a type, queue
    /// and schema, live or dead letters, in the order of their ids. `after` is the id of the last job
    /// of the page before; fewer than `count` jobs mean that there are no more.
    ///
    /// Each page is a snapshot of its own: a job that is enqueued while pages are read may be
    /// missed if its id is lower, and one that ends is gone from later pages. Locks nothing. A job
    /// whose stored values cannot be read is left out, with an error in the log.
    async fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError>;

    /// Looks through everything that is stored for what breaks a rule, and returns at most `limit`
    /// findings of each.
    ///
    /// One snapshot, read-only, without locks: workers go on meanwhile. It reads every job and every
    /// attempt, so it takes as long as that does; what it holds in memory does not grow with the
    /// store. A store that can be read and is broken is an answer; an error means that it could not
    /// be looked at.
    async fn verify(&self, limit: usize) -> Result<Verified, StoreError>;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaying {
    /// It waits again.
    Replayed,
    /// A live job holds the dedupe key that it would hold; nothing was changed.
    Duplicate(JobId),
    /// It is neither a dead letter nor cancelled; nothing was changed.
    NotReplayable(JobState),
    /// The edit is for other types than this one, which is the job's; nothing was changed.
    OtherType(JobType),
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
