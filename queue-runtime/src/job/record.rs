//! What a store keeps about a job, and what it hands out when one is claimed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::ids::{JobId, JobType, LeaseToken, QueueName, WorkerId};
use super::outcome::OutcomeKind;
use super::settlement::DeadReason;
use super::spec::CacheKey;
use crate::time::Timestamp;

/// Where a job stands. Scheduled and retrying jobs are `Queued` with a later `run_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobState {
    /// Waiting, perhaps for its time to come.
    Queued,
    /// Claimed by a worker under a lease.
    Processing,
    /// Finished well; final.
    Done,
    /// Will not be tried again, kept for inspection; final unless replayed.
    DeadLetter,
    /// Called off before it finished; final.
    Cancelled,
}

impl JobState {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Processing,
        Self::Done,
        Self::DeadLetter,
        Self::Cancelled,
    ];

    /// Returns the word that is stored, logged and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::DeadLetter => "dead_letter",
            Self::Cancelled => "cancelled",
        }
    }

    /// Says whether only a replay can lead out of this state.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::DeadLetter | Self::Cancelled)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for JobState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no job state"))
    }
}

/// Everything a store knows about one job, in any state.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// The id.
    pub id: JobId,
    /// The stable name of the kind of job.
    pub job_type: JobType,
    /// The queue it belongs to.
    pub queue: QueueName,
    /// The typed arguments as JSON text.
    pub payload: String,
    /// The number of the payload's shape.
    pub payload_schema: u32,
    /// Where it stands.
    pub state: JobState,
    /// Higher runs first.
    pub priority: i16,
    /// Runs that were started and count.
    pub attempts: u32,
    /// Runs that may be started.
    pub max_attempts: u32,
    /// Crashes in a row: leases that ran out without a settlement.
    pub crashes: u32,
    /// Times it asked to be put off.
    pub snoozes: u32,
    /// How often it was replayed as new.
    pub generation: u32,
    /// When it may next run.
    pub run_at: Timestamp,
    /// When somebody asked for it to be called off.
    pub cancel_requested_at: Option<Timestamp>,
    /// When the current lease ends; only while processing.
    pub locked_until: Option<Timestamp>,
    /// Who holds the lease; only while processing.
    pub locked_by: Option<WorkerId>,
    /// The newest lease token; `None` if it was never claimed.
    pub lock_token: Option<LeaseToken>,
    /// The dedupe key, while it is held.
    pub dedupe_key: Option<String>,
    /// 0 for the live job of its dedupe key, 1 for the one waiting behind it.
    pub dedupe_slot: u8,
    /// The idempotency key it was enqueued under.
    pub idempotency_key: Option<String>,
    /// The cache entry it refreshes.
    pub cache: Option<CacheKey>,
    /// After this instant it is not tried again.
    pub deadline: Option<Timestamp>,
    /// What the newest attempt came to; `None` before the first has ended.
    pub last_outcome: Option<OutcomeKind>,
    /// Why it is a dead letter.
    pub dead_reason: Option<DeadReason>,
    /// The newest error text, at most 8 KiB.
    pub last_error: Option<String>,
    /// The producer's W3C trace context.
    pub trace_context: Option<String>,
    /// When it was inserted.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
    /// When its newest attempt started.
    pub started_at: Option<Timestamp>,
    /// When it became final.
    pub finished_at: Option<Timestamp>,
}

/// One started run of a job, kept as history.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The lease token of the claim that started it; the key of the history row.
    pub token: LeaseToken,
    /// Its number, from 1; a run that was given back shares its number with the next.
    pub number: u32,
    /// Who ran it.
    pub worker: WorkerId,
    /// When it was claimed.
    pub started_at: Timestamp,
    /// When it was settled or rescued; `None` while it runs.
    pub finished_at: Option<Timestamp>,
    /// What it came to; `None` while it runs.
    pub outcome: Option<OutcomeKind>,
    /// The error text, at most 8 KiB.
    pub error: Option<String>,
}

/// One job as a claim hands it to a worker: what running it needs, and no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The id.
    pub id: JobId,
    /// The stable name of the kind of job.
    pub job_type: JobType,
    /// The queue it came from.
    pub queue: QueueName,
    /// The typed arguments as JSON text.
    pub payload: String,
    /// The number of the payload's shape.
    pub payload_schema: u32,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Runs that may be started in all.
    pub max_attempts: u32,
    /// Crashes in a row before this claim.
    pub crashes: u32,
    /// Times it asked to be put off before.
    pub snoozes: u32,
    /// How often it was replayed as new.
    pub generation: u32,
    /// The token that every write about this attempt must carry.
    pub token: LeaseToken,
    /// When the lease ends, on the store's clock.
    pub locked_until: Timestamp,
    /// The store's time of the claim.
    pub claimed_at: Timestamp,
    /// When it became due.
    pub run_at: Timestamp,
    /// When it was inserted.
    pub created_at: Timestamp,
    /// After this instant it is not tried again.
    pub deadline: Option<Timestamp>,
    /// Whether a cancel was asked for before the claim.
    pub cancel_requested: bool,
    /// The idempotency key it was enqueued under.
    pub idempotency_key: Option<String>,
    /// The cache entry it refreshes.
    pub cache: Option<CacheKey>,
    /// The producer's W3C trace context.
    pub trace_context: Option<String>,
}

impl Claimed {
    /// Returns the lease of this claim.
    pub fn lease(&self) -> Lease {
        Lease {
            id: self.id,
            token: self.token,
        }
    }

    /// Returns how long the job was due before it was claimed.
    pub fn waited(&self) -> Duration {
        self.claimed_at.since(self.run_at)
    }
}

/// Names one attempt: the job and the token of its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease {
    /// The job.
    pub id: JobId,
    /// The token of the claim.
    pub token: LeaseToken,
}
