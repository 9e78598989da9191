//! What happened to a job, as one stream that logs, metrics and tests all read.

use std::time::Duration;

use super::ids::{JobId, JobType, LeaseToken, QueueName, WorkerId};
use super::outcome::JobResult;
use super::record::JobState;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JobEvent {
    /// A job was accepted.
    Enqueued {
        /// The job.
        id: JobId,
        /// Its type.
        job_type: JobType,
        /// Its queue.
        queue: QueueName,
    },
    /// An enqueue was answered with a job that existed already.
    Deduplicated {
        /// The existing job.
        id: JobId,
        /// Its type.
        job_type: JobType,
    },
    /// A worker took a job.
    Claimed {
        /// The job.
        id: JobId,
        /// The token of the claim.
        token: LeaseToken,
        /// The number of the attempt.
        attempt: u32,
        /// The worker.
        worker: WorkerId,
    },
    /// An attempt lost its lease while it ran; its handler was stopped.
    LeaseLost {
        /// The job.
        id: JobId,
        /// The token that no longer holds.
        token: LeaseToken,
    },
    /// A handler blocks its thread: the worker's loops got no turn for this long.
    Blocked {
        /// The jobs that were running.
        running: Vec<JobId>,
        /// For how long.
        blocked: Duration,
    },
    /// An attempt ended and the store has applied it.
    Settled {
        /// The job.
        id: JobId,
        /// Its type.
        job_type: JobType,
        /// Its queue.
        queue: QueueName,
        /// The token of the claim.
        token: LeaseToken,
        /// The worker.
        worker: WorkerId,
        /// The number of the attempt.
        attempt: u32,
        /// The attempts that are allowed.
        max_attempts: u32,
        /// What the attempt came to.
        result: JobResult,
        /// Where the job stands now.
        state: JobState,
        /// The error text.
        error: Option<String>,
        /// The idempotency key it was enqueued under.
        idempotency_key: Option<String>,
        /// How long it was due before it was claimed.
        waited: Duration,
        /// How long the attempt took.
        took: Duration,
    },
    /// An attempt ended, and the store refused to record it: somebody else holds the job.
    SettledStale {
        /// The job.
        id: JobId,
        /// The token that no longer holds.
        token: LeaseToken,
    },
    /// A job whose lease had run out was taken from its worker.
    Rescued {
        /// The job.
        id: JobId,
        /// Its type.
        job_type: JobType,
        /// The token that was taken away.
        token: LeaseToken,
        /// The worker that held it.
        worker: WorkerId,
        /// Where the job stands now.
        state: JobState,
    },
    /// Final jobs were removed by retention.
    Pruned {
        /// How many.
        jobs: u64,
    },
}
