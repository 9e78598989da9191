//! What must hold once everything is final: read from the store, the ledger of effects and the
//! list of accepted jobs.

use std::collections::{BTreeMap, BTreeSet};

use queue_runtime::job::{Attempt, OutcomeKind};
use queue_runtime::{JobId, JobState, Queue};
use sqlx::{ConnectOptions, Row};

use crate::rig::Rig;

/// Lease tokens under which a job took effect, by job.
type Effects = BTreeMap<JobId, Vec<i64>>;

pub(crate) async fn check(rig: &Rig, jobs: u64) {
    the_file_is_sound(rig).await;
    let queue = rig.open().await;
    let effects = effects(rig);
    let accepted = accepted(rig);
    assert_eq!(accepted.len() as u64, jobs, "every request was answered");

    let mut states = BTreeMap::new();
    for (n, id) in &accepted {
        let state = one_job_is_sound(&queue, *id, effects.get(id)).await;
        let expected = if n % 10 == 7 {
            JobState::DeadLetter
        } else {
            JobState::Done
        };
        assert_eq!(state, expected, "job {n}");
        *states.entry(state).or_insert(0_u64) += 1;
    }

    let verified = queue.verify().await.expect("it answers");
    assert!(verified.is_sound(), "{verified}");

    // One job a request, and one follow-up for each that has one.
    let follow_ups = accepted.keys().filter(|n| *n % 10 == 5).count() as u64;
    let counts = queue.counts().await.expect("it answers");
    let done = states.get(&JobState::Done).copied().unwrap_or(0);
    assert_eq!(counts.total(), jobs + follow_ups);
    assert_eq!(verified.jobs, counts.total());
    assert_eq!(counts.of(JobState::Done), done + follow_ups);
    let known: BTreeSet<_> = accepted.values().collect();
    assert!(
        effects.keys().all(|id| known.contains(id)),
        "an effect of a job that nobody was told of"
    );
    queue.close().await;
}

/// Follows one job through its attempts, and returns how it ended.
async fn one_job_is_sound(queue: &Queue, id: JobId, effects: Option<&Vec<i64>>) -> JobState {
    let job = queue.job(id).await.expect("it answers");
    let job = job.unwrap_or_else(|| panic!("job {id} was accepted and is lost"));
    let attempts = queue.attempts(id).await.expect("it answers");
    let told = format!("{job:#?} {attempts:#?} effects {effects:?}");
    assert!(job.state.is_final(), "not final: {told}");
    assert!(
        job.attempts <= job.max_attempts,
        "too many attempts: {told}"
    );
    assert!(
        attempts.is_sorted_by(|a, b| a.token < b.token),
        "a later attempt has a higher token: {told}"
    );
    let (last, before) = attempts.split_last().expect("it was run");
    assert_eq!(Some(last.token), job.lock_token, "{told}");
    assert!(
        before.iter().all(|attempt| is(
            attempt,
            &[
                OutcomeKind::Lost,
                OutcomeKind::Retry,
                OutcomeKind::HandedBack
            ]
        )),
        "an end before the end: {told}"
    );
    assert!(
        is(last, &[OutcomeKind::Success, OutcomeKind::Permanent]),
        "no end: {told}"
    );

    let tokens = effects.map_or(&[][..], Vec::as_slice);
    let outcomes: BTreeMap<_, _> = attempts
        .iter()
        .map(|a| (a.token.get(), a.outcome))
        .collect();
    let once: BTreeSet<_> = tokens.iter().collect();
    assert_eq!(once.len(), tokens.len(), "one attempt, two effects: {told}");
    for token in tokens {
        let outcome = outcomes.get(token).copied().flatten();
        let allowed = [
            OutcomeKind::Success,
            OutcomeKind::Lost,
            OutcomeKind::HandedBack,
        ]
        .map(Some);
        assert!(
            allowed.contains(&outcome),
            "an effect of an attempt that said it had none: {told}"
        );
    }
    assert!(
        job.state != JobState::Done || tokens.contains(&last.token.get()),
        "done without its effect: {told}"
    );
    job.state
}

fn is(attempt: &Attempt, outcomes: &[OutcomeKind]) -> bool {
    attempt.finished_at.is_some() && attempt.outcome.is_some_and(|o| outcomes.contains(&o))
}

/// Reads lines of two words.
fn pairs(rig: &Rig, name: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(rig.path(name)).expect("the ledger");
    let pair = |line: &str| {
        let (first, second) = line.split_once(' ').expect("two words");
        (first.to_owned(), second.to_owned())
    };
    text.lines().map(pair).collect()
}

fn effects(rig: &Rig) -> Effects {
    let mut effects = Effects::new();
    for (id, token) in pairs(rig, "effects") {
        let id = id.parse().expect("an id");
        let token = token.parse().expect("a token");
        effects.entry(id).or_default().push(token);
    }
    effects
}

/// The job of each request; a request that was repeated was answered with the same job.
fn accepted(rig: &Rig) -> BTreeMap<u64, JobId> {
    let mut accepted = BTreeMap::new();
    for (n, id) in pairs(rig, "accepted") {
        let n: u64 = n.parse().expect("a number");
        let id: JobId = id.parse().expect("an id");
        let first = *accepted.entry(n).or_insert(id);
        assert_eq!(first, id, "request {n} has two jobs");
    }
    accepted
}

async fn the_file_is_sound(rig: &Rig) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(rig.path("jobs.db"));
    let mut conn = options.connect().await.expect("the file opens");
    let row = sqlx::query("pragma integrity_check")
        .fetch_one(&mut conn)
        .await
        .expect("it answers");
    assert_eq!(row.get::<String, _>(0), "ok");
}
