//! What the small numbers of a step stand for: jobs, requests, settlements.

use std::time::Duration;

use queue_runtime::job::{
    CacheKey, Change, Claimed, DeadReason, DedupeUntil, Due, Fingerprint, Idempotency, JobId,
    NewJob, OnDuplicate, OutcomeKind, Settlement,
};
use queue_runtime::store::{ClaimRequest, Edit, EditedJob, Suspects};
use queue_runtime::time::Timestamp;
use queue_testkit::conformance::jobs::{
    called_off, dead_because, done, handed_back, held, job_type, plain, queue, rescue, retry,
    snooze, worker,
};

use super::steps::{Claim, Editing, Ending, Mode, Offer, Until, When};

pub(crate) const TYPES: [&str; 2] = ["send_welcome", "bill"];
pub(crate) const QUEUES: [&str; 2] = ["default", "mail"];
pub(crate) const CACHE_KEYS: [&str; 2] = ["user:1", "user:2"];
pub(crate) const CRASHES_MAX: u32 = 3;

pub(crate) fn new_job(id: JobId, offer: &Offer, now: Timestamp) -> NewJob {
    NewJob {
        job_type: job_type(TYPES[offer.kind]),
        queue: queue(QUEUES[offer.queue]),
        payload: format!(r#"{{"n":{}}}"#, offer.payload),
        payload_schema: offer.schema,
        priority: offer.priority,
        max_attempts: offer.max_attempts,
        due: match offer.due {
            When::Now => Due::Now,
            When::After { seconds } => Due::After(Duration::from_secs(seconds)),
            When::At { millis } => Due::At(Timestamp::from_millis(
                now.as_millis().saturating_add(millis),
            )),
        },
        deadline: offer.deadline_seconds.map(Duration::from_secs),
        dedupe: offer.dedupe.and_then(|(key, until, mode)| {
            let until = match until {
                Until::Finished => DedupeUntil::Finished,
                Until::Started => DedupeUntil::Started,
                Until::Seconds(seconds) => DedupeUntil::Window(Duration::from_secs(seconds)),
            };
            let mode = match mode {
                Mode::Keep => OnDuplicate::Keep,
                Mode::Replace => OnDuplicate::Replace,
                Mode::Rerun => OnDuplicate::Rerun,
            };
            held(&format!("k{key}"), until, mode)
        }),
        idempotency: offer
            .idempotency
            .map(|(key, request, seconds)| Idempotency {
                key: format!("i{key}"),
                fingerprint: Fingerprint::from_stored(format!(r#"{{"n":"{request}"}}"#)),
                window: Duration::from_secs(seconds),
            }),
        cache: offer.cache.map(|(key, version)| CacheKey {
            key: CACHE_KEYS[key].to_owned(),
            version,
        }),
        trace_context: offer.deadline_seconds.map(|span| format!("00-{span}-01")),
        ..plain(id)
    }
}

pub(crate) fn edit(editing: &Editing) -> Edit {
    let payload = format!(r#"{{"n":{}}}"#, editing.payload);
    let edit = Edit::new(payload, editing.schema).expect("a payload that may be stored");
    let Some(typed) = &editing.typed else {
        return edit;
    };
    edit.of_job(EditedJob {
        job_types: vec![job_type("renamed"), job_type(TYPES[typed.kind])],
        dedupe_key: typed.dedupe.map(|(key, _)| format!("k{key}")),
        dedupe_until_started: typed.dedupe.is_some_and(|(_, until_started)| until_started),
        cache: typed.cache.map(|(key, version)| CacheKey {
            key: CACHE_KEYS[key].to_owned(),
            version,
        }),
    })
}

pub(crate) fn request(claim: &Claim) -> ClaimRequest {
    let mut queues = QUEUES.map(queue).to_vec();
    if claim.turned {
        queues.reverse();
    }
    ClaimRequest {
        worker: worker(&format!("w@{}", claim.worker)),
        queues,
        job_types: vec![(job_type(TYPES[0]), claim.schema), (job_type(TYPES[1]), 2)],
        limit: claim.limit,
        lease: Duration::from_secs(claim.seconds),
        suspects: claim
            .suspects
            .map_or(Suspects::NONE, |(crashes, limit)| Suspects {
                crashes,
                limit,
            }),
    }
}

pub(crate) fn settlement(run: &Claimed, ending: Ending) -> Settlement {
    let seconds = Duration::from_secs;
    let settlement = match ending {
        Ending::Done => done(run),
        Ending::Superseded => Settlement {
            outcome: OutcomeKind::Superseded,
            attempts: run.attempt - 1,
            ..done(run)
        },
        Ending::Retry { seconds: delay } => retry(run, seconds(delay)),
        Ending::Snooze { seconds: delay } => snooze(run, seconds(delay)),
        Ending::HandedBack => handed_back(run),
        Ending::Dead { reason } => dead_because(run, DeadReason::ALL[reason]),
        Ending::CalledOff => called_off(run),
        Ending::Rescued => rescue(run),
    };
    bounded(settlement, run.max_attempts)
}

/// Ends a job that would wait again with a budget used up, as the rules do.
pub(crate) fn bounded(settlement: Settlement, max_attempts: u32) -> Settlement {
    let waits = matches!(settlement.change, Change::Queued { .. });
    let reason = match settlement {
        _ if settlement.crashes >= CRASHES_MAX => DeadReason::Crashed,
        _ if settlement.attempts >= max_attempts => DeadReason::AttemptsExhausted,
        _ => return settlement,
    };
    if !waits {
        return settlement;
    }
    Settlement {
        change: Change::DeadLetter { reason },
        ..settlement
    }
}
