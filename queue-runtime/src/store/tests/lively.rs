//! A store in which jobs stand at every place of their life, for tests that then break something.

use std::time::Duration;

use crate::job::{
    Change, Claimed, DeadReason, Dedupe, DedupeUntil, Due, Finding, Idempotency, Invariant, JobId,
    JobType, LeaseToken, NewJob, OnDuplicate, OutcomeKind, QueueName, Settled, Settlement,
    Verified, WorkerId,
};
use crate::rules::dedupe::fingerprint;
use crate::store::{Cancelling, ClaimRequest, Store, Suspects};

/// How long the leases of running jobs last.
pub(crate) const LEASE: Duration = Duration::from_mins(1);

/// One job at each place.
#[derive(Debug)]
pub(crate) struct Lively {
    pub(crate) queued: JobId,
    pub(crate) done: Claimed,
    pub(crate) dead: Claimed,
    pub(crate) cancelled: JobId,
    /// It was tried twice, and waits.
    pub(crate) retrying: JobId,
    /// The tokens of its attempts.
    pub(crate) tried: [LeaseToken; 2],
    /// Its idempotency key is `asked`, and it waits.
    pub(crate) asked: JobId,
    /// It opened the window of the dedupe key `often`, and waits.
    pub(crate) windowed: JobId,
    /// It holds the dedupe key `held`, and runs.
    pub(crate) holder: Claimed,
    /// It waits behind that key.
    pub(crate) behind: JobId,
    /// It was claimed last.
    pub(crate) running: Claimed,
}

/// Leads jobs to every place; `new` gives a plain job of the type `mail`, due at once.
pub(crate) async fn lively(store: &dyn Store, new: impl Fn() -> NewJob) -> Lively {
    let later = || NewJob {
        due: Due::After(Duration::from_hours(1)),
        ..new()
    };
    let done = ended(store, &new(), Change::Done, OutcomeKind::Success).await;
    let reason = DeadReason::Permanent;
    let change = Change::DeadLetter { reason };
    let dead = ended(store, &new(), change, OutcomeKind::Permanent).await;
    let cancelled = add(store, &new()).await;
    let answer = store.cancel(cancelled).await.expect("it answers");
    assert_eq!(answer, Cancelling::Cancelled);
    let (retrying, tried) = tried(store, &new()).await;
    let answered = NewJob {
        idempotency: request("answered"),
        ..new()
    };
    ended(store, &answered, Change::Done, OutcomeKind::Success).await;
    let asked = NewJob {
        idempotency: request("asked"),
        ..later()
    };
    let asked = add(store, &asked).await;
    let windowed = NewJob {
        dedupe: dedupe("often", DedupeUntil::Window(Duration::from_hours(1))),
        ..later()
    };
    let windowed = add(store, &windowed).await;
    let held = || NewJob {
        dedupe: dedupe("held", DedupeUntil::Finished),
        ..new()
    };
    let holder = claimed(store, &held()).await;
    let behind = add(store, &held()).await;
    let running = claimed(store, &new()).await;
    Lively {
        queued: add(store, &new()).await,
        done,
        dead,
        cancelled,
        retrying,
        tried,
        asked,
        windowed,
        holder,
        behind,
        running,
    }
}

/// How many jobs there are, live and final, and how many of them are live.
pub(crate) const JOBS: (u64, usize) = (11, 7);

/// Says what differs from what is expected: for each finding its rule, and words of it.
pub(crate) fn difference(
    verified: &Verified,
    planted: &str,
    expected: &[(Invariant, &str)],
) -> Option<String> {
    let findings = verified.violations.iter().chain(&verified.warnings);
    let is_expected = |(finding, (invariant, words)): (&Finding, &(Invariant, &str))| {
        finding.invariant == *invariant && finding.to_string().contains(words)
    };
    let is_same = findings.clone().count() == expected.len()
        && findings.zip(expected).all(is_expected)
        && verified.is_sound() == expected.is_empty()
        && verified.more.is_empty();
    (!is_same).then(|| format!("after {planted}:\n{verified}\nexpected {expected:?}\n"))
}

async fn tried(store: &dyn Store, job: &NewJob) -> (JobId, [LeaseToken; 2]) {
    let mut tokens = [LeaseToken::new(0); 2];
    add(store, job).await;
    for (token, delay) in tokens
        .iter_mut()
        .zip([Duration::ZERO, Duration::from_hours(1)])
    {
        let run = claim(store).await;
        *token = run.token;
        settle(store, &run, Change::Queued { delay }, OutcomeKind::Retry).await;
    }
    (job.id, tokens)
}

async fn ended(store: &dyn Store, job: &NewJob, change: Change, outcome: OutcomeKind) -> Claimed {
    let run = claimed(store, job).await;
    settle(store, &run, change, outcome).await;
    run
}

async fn settle(store: &dyn Store, run: &Claimed, change: Change, outcome: OutcomeKind) {
    let state = change.state();
    let settlement = Settlement {
        id: run.id,
        token: run.token,
        change,
        outcome,
        error: None,
        attempts: run.attempt,
        crashes: 0,
        snoozes: 0,
        only_if_expired: false,
    };
    let settled = store.settle(&[settlement]).await.expect("it answers");
    assert_eq!(settled, [Settled::Applied(state)]);
}

async fn claimed(store: &dyn Store, job: &NewJob) -> Claimed {
    add(store, job).await;
    let run = claim(store).await;
    assert_eq!(run.id, job.id, "no other job was due");
    run
}

async fn claim(store: &dyn Store) -> Claimed {
    let request = ClaimRequest {
        worker: WorkerId::new("w1").expect("a name"),
        queues: vec![QueueName::default_queue()],
        job_types: vec![(JobType::new("mail").expect("a name"), 1)],
        limit: 1,
        lease: LEASE,
        suspects: Suspects::NONE,
    };
    let mut claimed = store.claim(&request).await.expect("it answers");
    claimed.pop().expect("a job is due")
}

async fn add(store: &dyn Store, job: &NewJob) -> JobId {
    let added = store.insert(std::slice::from_ref(job)).await;
    added.expect("it answers");
    job.id
}

fn request(key: &str) -> Option<Idempotency> {
    Some(Idempotency {
        key: key.to_owned(),
        fingerprint: fingerprint("{}"),
        window: Duration::from_hours(1),
    })
}

fn dedupe(key: &str, until: DedupeUntil) -> Option<Dedupe> {
    Some(Dedupe {
        key: key.to_owned(),
        until,
        on_duplicate: OnDuplicate::Rerun,
    })
}
