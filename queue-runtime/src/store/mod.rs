//! What every store can do: a handful of batch-shaped verbs that mean the same everywhere.
//!
//! Slices go in, vectors come out, in the same order. The rules decide what should happen to a
//! job; a store only guards that it still may, in one atomic step each. Every write about an
//! attempt names its lease token, and a token that no longer holds is answered, not an error.
//! The store's clock is the clock: callers pass spans, never instants that they made themselves.

mod admin;
pub(crate) mod apart;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod listing;
pub mod memory;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod migration;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod round;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(test)]
mod tests;
mod tx;
mod versions;
mod wake;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

pub use admin::{
    Admin, Cancelling, Counts, Edit, EditedJob, Pruned, Replaying, Retention, UNREAD_LANES_MAX,
    UNREAD_MAX, Unread, Waiting,
};
pub use tx::Tx;
pub use versions::Versions;
pub use wake::{Wake, WakeListener};

use crate::error::StoreError;
use crate::job::{
    Claimed, JobId, JobRecord, JobState, JobType, Lease, NewJob, QueueName, Settled, Settlement,
    WorkerId,
};
use crate::time::Timestamp;

/// The verbs of a job's life, as every store offers them.
///
/// Any error means that the outcome is unknown: all or nothing of the batch may have happened.
/// Dropping a verb's future has the same effect. Each verb is safe to repeat after that: inserts
/// carry the producer's ids, claims that nobody heard of run out with their lease, settlements
/// carry tokens.
#[async_trait]
pub trait Store: Admin + Versions + Debug + Send + Sync + 'static {
    /// Inserts jobs, and answers each in order.
    ///
    /// All of the batch is stored or nothing. Items of one batch see one another: the second of
    /// two equal dedupe keys is a duplicate of the first. An item whose id is stored already is
    /// answered `New` again and changes nothing, its cache version included. Cache versions rise
    /// in the same transaction, also for an item that turns out to be a duplicate.
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError>;

    /// Claims at most `limit` due jobs for a lease and returns them in the order to run them:
    /// queues as given, then priority (higher first), due time, id.
    ///
    /// May return fewer, also none. Two callers never receive the same job for overlapping
    /// leases; each result carries a new token, higher than any before it for that job. Starts an
    /// attempt: `attempts` is counted here, so a crash cannot lose the count. Jobs of types or
    /// payload schemas that the request does not name stay untouched, and so do suspects beyond
    /// their limit. A due job whose stored values cannot be read is set aside as a dead letter,
    /// reason `undecodable`, and others are taken in its place.
    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError>;

    /// Applies settlements, and answers each in order.
    ///
    /// An item is applied only while its token is the job's current one, whether or not the lease
    /// has run out (a rescue, `only_if_expired`, also demands that it has). One stale item does
    /// not hinder the others, nor does one whose row another transaction holds: it is answered
    /// `Held`. A job that becomes final moves to the finished jobs; the job
    /// waiting behind its dedupe key becomes claimable in the same step.
    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError>;

    /// Settles, then claims, in one transaction where the store can.
    async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        let settled = self.settle(settlements).await?;
        Ok((settled, self.claim(request).await?))
    }

    /// Opens the way by which leases are renewed: a connection of its own, so that neither a
    /// busy pool nor a long transaction of the caller's can starve it.
    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError>;

    /// Returns at most `limit` jobs whose lease has run out by the store's clock, oldest first.
    /// One whose stored values cannot be read is set aside as by a claim, and left out.
    async fn expired(&self, limit: usize) -> Result<Vec<JobRecord>, StoreError>;

    /// Returns how long until a job that `request` could claim becomes due; zero if one is due
    /// already, `None` if none waits. A request for no suspects does not wait for one.
    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError>;

    /// Creates or upgrades the store's tables; does nothing where they are current.
    async fn migrate(&self) -> Result<(), StoreError>;

    /// Returns the store's time.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Listens for jobs that may have become claimable. A hint, never needed for correctness.
    fn wakes(&self) -> WakeListener;

    /// Closes connections after finishing what was accepted. Later calls fail as closed.
    async fn close(&self);
}

/// Renews leases over a connection of its own.
#[async_trait]
pub trait Heartbeat: Send {
    /// Renews leases to end `lease` from now by the store's clock, and answers each in order.
    ///
    /// Also renews a lease that has run out but was not rescued yet. An error means that it is
    /// unknown which leases were renewed.
    async fn extend(
        &mut self,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError>;
}

/// What a worker asks for when it claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// The queues, first served first; the caller rotates them for fairness.
    pub queues: Vec<QueueName>,
    /// The types that the worker runs, each with the highest payload schema that it reads.
    pub job_types: Vec<(JobType, u32)>,
    /// The largest number of jobs; zero asks for nothing.
    pub limit: usize,
    /// How long the leases last.
    pub lease: Duration,
    /// How many of the jobs may be suspects.
    pub suspects: Suspects,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl ClaimRequest {
    /// Names each queue once, in order, and each type once, with the highest of its schemas.
    pub(crate) fn folded(&self) -> (Vec<&str>, BTreeMap<&str, u32>) {
        let mut queues = Vec::with_capacity(self.queues.len());
        for queue in &self.queues {
            if !queues.contains(&queue.as_str()) {
                queues.push(queue.as_str());
            }
        }
        let mut job_types = BTreeMap::new();
        for (job_type, schema) in &self.job_types {
            let highest = job_types.entry(job_type.as_str()).or_default();
            *highest = (*schema).max(*highest);
        }
        (queues, job_types)
    }
}

/// Bounds the jobs of a claim that took their worker down before, so that one which does it
/// again takes few others along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspects {
    /// A job with at least this many crashes in a row is a suspect.
    pub crashes: u32,
    /// The largest number of them in one claim; others are taken in their place.
    pub limit: usize,
}

impl Suspects {
    /// No job is a suspect.
    pub const NONE: Self = Self {
        crashes: u32::MAX,
        limit: usize::MAX,
    };
}

impl Default for Suspects {
    fn default() -> Self {
        Self::NONE
    }
}

/// The answer to one inserted job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// Stored under its own id.
    New {
        /// The id.
        id: JobId,
    },
    /// Not stored: an existing job answers for it.
    Duplicate {
        /// The existing job.
        existing: JobId,
        /// Where it stands.
        state: JobState,
        /// Whether the newcomer's payload differs from the stored one (after `Replace`: from
        /// the one that was stored before).
        payload_differs: bool,
    },
    /// Not stored: its idempotency key belongs to a request with another payload.
    Conflict {
        /// The job that the key belongs to.
        existing: JobId,
        /// The payload fields that differ, sorted.
        fields: Vec<String>,
    },
}

/// The answer to one renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// Renewed.
    Kept,
    /// Refused: somebody else holds the job, or it is final.
    Lost,
    /// Not renewed because a transaction of the handler's own holds the row; nobody can take it.
    Held,
    /// Renewed, and somebody asked for the job to be called off.
    Cancel,
}
