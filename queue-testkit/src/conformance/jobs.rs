//! Jobs and settlements as the cases write them: plain, and with one thing different each.

use std::time::Duration;

use queue_runtime::job::{
    Change, Claimed, DeadReason, Dedupe, DedupeUntil, Due, Fingerprint, Idempotency, JobId,
    JobRecord, JobType, NewJob, OnDuplicate, OutcomeKind, QueueName, Settlement, WorkerId,
};
use queue_runtime::store::ClaimRequest;

/// One millisecond, the smallest step of a store's clock.
pub const MS: Duration = Duration::from_millis(1);
/// One second.
pub const SECOND: Duration = Duration::from_secs(1);
/// The lease of the cases' claims.
pub const LEASE: Duration = Duration::from_secs(60);
/// One hour, the window of the cases' idempotency keys.
pub const HOUR: Duration = Duration::from_hours(1);
/// The type of the cases' jobs.
pub const JOB_TYPE: &str = "send_welcome";
/// The queue of the cases' jobs.
pub const QUEUE: &str = "default";
/// The payload schema of the cases' jobs.
pub const SCHEMA: u32 = 3;
/// The payload of the cases' jobs.
pub const PAYLOAD: &str = r#"{"user_id":42}"#;

/// Returns a plain job: due at once, five attempts, no key of any kind.
pub fn plain(id: JobId) -> NewJob {
    NewJob {
        id,
        job_type: job_type(JOB_TYPE),
        queue: queue(QUEUE),
        payload: PAYLOAD.to_owned(),
        payload_schema: SCHEMA,
        priority: 0,
        max_attempts: 5,
        due: Due::Now,
        deadline: None,
        dedupe: None,
        idempotency: None,
        cache: None,
        trace_context: None,
    }
}

/// Returns a job type.
pub fn job_type(name: &str) -> JobType {
    JobType::new(name).expect("a valid job type")
}

/// Returns a queue's name.
pub fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a valid queue name")
}

/// Returns a worker's id.
pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("a valid worker id")
}

/// Returns a request that names other queues.
pub fn from_queues(request: ClaimRequest, queues: &[&str]) -> ClaimRequest {
    let queues: Vec<QueueName> = queues.iter().map(|name| queue(name)).collect();
    ClaimRequest { queues, ..request }
}

/// Returns a request that names other job types, each with the highest schema it reads.
pub fn of_types(request: ClaimRequest, types: &[(&str, u32)]) -> ClaimRequest {
    let job_types: Vec<(JobType, u32)> = types
        .iter()
        .map(|(name, schema)| (job_type(name), *schema))
        .collect();
    ClaimRequest {
        job_types,
        ..request
    }
}

/// Returns a dedupe key that is held until the job is final.
pub fn dedupe(key: &str, on_duplicate: OnDuplicate) -> Option<Dedupe> {
    held(key, DedupeUntil::Finished, on_duplicate)
}

/// Returns a dedupe key that is held until `until`.
pub fn held(key: &str, until: DedupeUntil, on_duplicate: OnDuplicate) -> Option<Dedupe> {
    Some(Dedupe {
        key: key.to_owned(),
        until,
        on_duplicate,
    })
}

/// Returns a dedupe key whose duplicates are dropped.
pub fn keep(key: &str) -> Option<Dedupe> {
    dedupe(key, OnDuplicate::Keep)
}

/// Returns a dedupe key whose duplicates rewrite the waiting job.
pub fn replace(key: &str) -> Option<Dedupe> {
    dedupe(key, OnDuplicate::Replace)
}

/// Returns a dedupe key whose duplicates wait behind the running job.
pub fn rerun(key: &str) -> Option<Dedupe> {
    dedupe(key, OnDuplicate::Rerun)
}

/// Returns an idempotency key with a window of an hour, for a request with this fingerprint.
pub fn once(key: &str, fingerprint: &str) -> Option<Idempotency> {
    Some(Idempotency {
        key: key.to_owned(),
        fingerprint: Fingerprint::from_stored(fingerprint),
        window: HOUR,
    })
}

/// The fingerprint of a request, as stored.
pub const REQUEST: &str = r#"{"amount":"8f0c","note":"77aa","user_id":"19be"}"#;
/// The fingerprint of a request that differs in `amount` and `user_id`.
pub const OTHER_REQUEST: &str = r#"{"amount":"0001","note":"77aa","user_id":"0002"}"#;

/// The settlement of a run that succeeded.
pub fn done(run: &Claimed) -> Settlement {
    settlement(run, Change::Done, OutcomeKind::Success)
}

/// The settlement of a run that failed and is tried again after a delay.
pub fn retry(run: &Claimed, delay: Duration) -> Settlement {
    Settlement {
        error: Some("mail server busy".to_owned()),
        ..settlement(run, Change::Queued { delay }, OutcomeKind::Retry)
    }
}

/// The settlement of a run that asks to be put off; it gives its attempt back.
pub fn snooze(run: &Claimed, delay: Duration) -> Settlement {
    Settlement {
        attempts: run.attempt - 1,
        snoozes: run.snoozes + 1,
        ..settlement(run, Change::Queued { delay }, OutcomeKind::Snooze)
    }
}

/// The settlement of a run that its worker hands back unfinished; it gives its attempt back.
pub fn handed_back(run: &Claimed) -> Settlement {
    let change = Change::Queued {
        delay: Duration::ZERO,
    };
    let attempts = run.attempt - 1;
    Settlement {
        attempts,
        ..settlement(run, change, OutcomeKind::HandedBack)
    }
}

/// The settlement of a run that failed for good.
pub fn dead(run: &Claimed) -> Settlement {
    dead_because(run, DeadReason::Permanent)
}

/// The settlement of a run that failed for good, for a reason.
pub fn dead_because(run: &Claimed, reason: DeadReason) -> Settlement {
    Settlement {
        error: Some("no such user".to_owned()),
        ..settlement(run, Change::DeadLetter { reason }, OutcomeKind::Permanent)
    }
}

/// The settlement of a run that was called off.
pub fn called_off(run: &Claimed) -> Settlement {
    settlement(run, Change::Cancelled, OutcomeKind::Cancelled)
}

/// The rescue of a run whose lease ran out, from its claim.
pub fn rescue(run: &Claimed) -> Settlement {
    Settlement {
        crashes: run.crashes + 1,
        error: Some("the lease ran out".to_owned()),
        only_if_expired: true,
        ..settlement(
            run,
            Change::Queued {
                delay: Duration::ZERO,
            },
            OutcomeKind::Lost,
        )
    }
}

/// The rescue of a run whose lease ran out, from the record that the store listed.
///
/// # Panics
/// If the record has no token: it was never claimed.
pub fn rescue_of(record: &JobRecord) -> Settlement {
    Settlement {
        id: record.id,
        token: record.lock_token.expect("an expired job has a token"),
        change: Change::Queued {
            delay: Duration::ZERO,
        },
        outcome: OutcomeKind::Lost,
        error: Some("the lease ran out".to_owned()),
        attempts: record.attempts,
        crashes: record.crashes + 1,
        snoozes: record.snoozes,
        only_if_expired: true,
    }
}

fn settlement(run: &Claimed, change: Change, outcome: OutcomeKind) -> Settlement {
    Settlement {
        id: run.id,
        token: run.token,
        change,
        outcome,
        error: None,
        attempts: run.attempt,
        crashes: 0,
        snoozes: run.snoozes,
        only_if_expired: false,
    }
}
