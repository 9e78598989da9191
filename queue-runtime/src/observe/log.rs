//! Events as log lines, with fixed field names.
//!
//! An attempt whose end is recorded has the line `attempt ended`. Others have lines of their own:
//! one that lost its lease (`lease lost`), one whose result came too late (`result refused`), and
//! one that was taken from its worker (`lease ran out`). Payloads are never logged.

use crate::job::{JobEvent, JobResult, JobState};

macro_rules! settled_line {
    ($level:ident, $event:expr) => {{
        let line = $event;
        tracing::$level!(
            job_id = %line.id,
            job_type = %line.job_type,
            queue = %line.queue,
            worker_id = %line.worker,
            attempt = line.attempt,
            max_attempts = line.max_attempts,
            duration_ms = line.duration_ms,
            wait_ms = line.wait_ms,
            result = %line.result,
            error_message = line.error,
            idempotency_key = line.idempotency_key,
            lock_key = %line.lock_key,
            lock_token = %line.token,
            "attempt ended"
        );
    }};
}

pub(super) fn event(event: &JobEvent) {
    match event {
        JobEvent::Settled { result, .. } => settled(event, *result),
        JobEvent::SettledStale { id, token } => tracing::warn!(
            job_id = %id, lock_token = %token,
            "result refused: somebody else holds the job, or it is final"
        ),
        JobEvent::LeaseLost { id, token } => {
            tracing::warn!(job_id = %id, lock_token = %token, "lease lost: handler stopped");
        }
        JobEvent::Rescued {
            id,
            job_type,
            token,
            worker,
            state,
        } => {
            macro_rules! line {
                ($level:ident) => {
                    tracing::$level!(
                        job_id = %id, job_type = %job_type, lock_token = %token,
                        worker_id = %worker, state = %state,
                        "lease ran out: job taken from its worker"
                    )
                };
            }
            match state {
                JobState::DeadLetter => line!(error),
                _ => line!(warn),
            }
        }
        JobEvent::Blocked { running, blocked } => tracing::warn!(
            jobs = ?running, blocked_ms = millis(*blocked),
            "a handler blocks its thread: use spawn_blocking for work that does not await"
        ),
        JobEvent::Enqueued {
            id,
            job_type,
            queue,
        } => {
            tracing::debug!(job_id = %id, job_type = %job_type, queue = %queue, "enqueued");
        }
        JobEvent::Deduplicated { id, job_type } => {
            tracing::debug!(job_id = %id, job_type = %job_type, "answered by an existing job");
        }
        JobEvent::Claimed {
            id,
            token,
            attempt,
            worker,
        } => tracing::trace!(
            job_id = %id, lock_token = %token, attempt, worker_id = %worker, "claimed"
        ),
        JobEvent::Pruned { jobs } => tracing::debug!(jobs, "old final jobs removed"),
    }
}

struct Line<'a> {
    id: &'a crate::job::JobId,
    job_type: &'a crate::job::JobType,
    queue: &'a crate::job::QueueName,
    worker: &'a crate::job::WorkerId,
    token: &'a crate::job::LeaseToken,
    attempt: u32,
    max_attempts: u32,
    duration_ms: u64,
    wait_ms: u64,
    result: JobResult,
    error: Option<&'a str>,
    idempotency_key: Option<&'a str>,
    lock_key: String,
}

fn settled(event: &JobEvent, result: JobResult) {
    let enabled = match result {
        JobResult::DeadLetter => tracing::enabled!(tracing::Level::ERROR),
        JobResult::Retry => tracing::enabled!(tracing::Level::WARN),
        _ => tracing::enabled!(tracing::Level::INFO),
    };
    let (true, Some(line)) = (enabled, Line::of(event)) else {
        return;
    };
    match result {
        JobResult::DeadLetter => settled_line!(error, line),
        JobResult::Retry => settled_line!(warn, line),
        _ => settled_line!(info, line),
    }
}

impl<'a> Line<'a> {
    fn of(event: &'a JobEvent) -> Option<Self> {
        let JobEvent::Settled {
            id,
            job_type,
            queue,
            token,
            worker,
            attempt,
            max_attempts,
            result,
            state: _,
            error,
            idempotency_key,
            waited,
            took,
        } = event
        else {
            return None;
        };
        Some(Self {
            id,
            job_type,
            queue,
            worker,
            token,
            attempt: *attempt,
            max_attempts: *max_attempts,
            duration_ms: millis(*took),
            wait_ms: millis(*waited),
            result: *result,
            error: error.as_deref(),
            idempotency_key: idempotency_key.as_deref(),
            lock_key: format!("job:{id}"),
        })
    }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
