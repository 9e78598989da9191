//! Every rule that stored data can break is found broken, in the store that nobody can reach into
//! from outside.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::MemoryStore;
use super::state::State;
use crate::job::{
    Due, Invariant, JobId, JobRecord, JobState, JobType, NewJob, QueueName, Verified,
};
use crate::seam::{Seam, SystemSeam};
use crate::store::Admin;
use crate::store::tests::lively::{JOBS, Lively, difference, lively};

const EVERYTHING: usize = 100;

fn job() -> NewJob {
    NewJob {
        id: SystemSeam::new().job_id(),
        job_type: JobType::new("mail").expect("a name"),
        queue: QueueName::default_queue(),
        payload: "{}".to_owned(),
        payload_schema: 1,
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

async fn store() -> (MemoryStore, Lively) {
    let store = MemoryStore::new(Arc::new(SystemSeam::new()));
    let lively = lively(&store, job).await;
    (store, lively)
}

async fn verify(store: &MemoryStore) -> Verified {
    store.verify(EVERYTHING).await.expect("it answers")
}

/// What is done to the state, and what is then found of each rule.
type Planted = (
    fn(&mut State, &Lively),
    &'static [(Invariant, &'static str)],
);

fn live(state: &mut State, id: JobId) -> &mut JobRecord {
    &mut state.live.get_mut(&id).expect("it is live").record
}

fn finished(state: &mut State, id: JobId) -> &mut JobRecord {
    &mut state.finished.get_mut(&id).expect("it is final").record
}

const PLANTED: &[Planted] = {
    use Invariant::{
        AttemptJob, AttemptOrder, Attempts, Crashes, DedupeBehind, DedupeHolder, KeyEnd, KeyJob,
        KeyType, Lease, NewestAttempt, NewestToken, OneTable, OpenAttempt, Snoozes, TokenCounter,
        TokenOnce,
    };
    &[
        (
            |state, l| {
                let mut moved = state.live.remove(&l.queued).expect("it is live");
                moved.record.state = JobState::Cancelled;
                moved.record.finished_at = Some(moved.record.created_at);
                state.finished.insert(l.queued, moved);
                let mut again = State::default();
                again.insert(
                    &NewJob {
                        id: l.queued,
                        ..job()
                    },
                    crate::Timestamp::EPOCH,
                );
                state.live.append(&mut again.live);
            },
            &[(OneTable, "it is live and final")],
        ),
        (
            |state, l| live(state, l.retrying).state = JobState::DeadLetter,
            &[(Invariant::State, "it is live and dead_letter")],
        ),
        (
            |state, l| finished(state, l.cancelled).finished_at = None,
            &[(
                Invariant::State,
                "it is cancelled, and nobody knows since when",
            )],
        ),
        (
            |state, l| live(state, l.running.id).locked_by = None,
            &[(Lease, "its lease has no worker")],
        ),
        (
            |state, l| live(state, l.running.id).max_attempts = 0,
            &[(Attempts, "with 1 attempts of 0")],
        ),
        (
            |state, l| live(state, l.retrying).crashes = 1,
            &[(Crashes, "it counts 1 crashes")],
        ),
        (
            |state, l| live(state, l.retrying).snoozes = 1,
            &[(Snoozes, "it counts 1 snoozes")],
        ),
        (
            |state, l| {
                state
                    .attempts
                    .get_mut(&l.tried[1])
                    .expect("it was")
                    .1
                    .number = 7
            },
            &[(AttemptOrder, "attempt 7 of token")],
        ),
        (
            |state, l| drop(state.finished.remove(&l.done.id)),
            &[(AttemptJob, "its attempt is stored, and its job is not")],
        ),
        (
            |state, l| drop(state.attempts.remove(&l.done.token)),
            &[
                (Attempts, "it counts 1 attempts, and its history shows 0"),
                (NewestAttempt, "its history has no such attempt"),
            ],
        ),
        (
            |state, l| live(state, l.retrying).lock_token = Some(l.tried[0]),
            &[(NewestToken, "and its history has")],
        ),
        (
            |state, l| {
                let (_, attempt) = state.attempts.get_mut(&l.done.token).expect("it was");
                attempt.finished_at = None;
            },
            &[(OpenAttempt, "it is done, and its attempt of token")],
        ),
        (
            |state, l| live(state, l.retrying).lock_token = Some(l.running.token),
            &[
                (NewestAttempt, "its history has no such attempt"),
                (TokenOnce, "2 attempts have it"),
            ],
        ),
        (
            |state, _| state.newest_token = 2,
            &[(TokenCounter, "the store has given none above 2")],
        ),
        (
            |state, l| live(state, l.behind).dedupe_slot = 0,
            &[(DedupeHolder, "live jobs that hold it: 2")],
        ),
        (
            |state, l| live(state, l.holder.id).dedupe_key = None,
            &[(DedupeBehind, "a job waits behind it, and nobody holds it")],
        ),
        (
            |state, l| drop(state.live.remove(&l.asked)),
            &[(KeyJob, "key \"asked\" of \"mail\"")],
        ),
        (
            |state, l| {
                for key in state.idempotency_keys.values_mut() {
                    if key.job == l.asked {
                        key.expires_at = Some(key.created_at);
                    }
                }
            },
            &[(KeyEnd, "its job")],
        ),
        (
            |state, l| {
                live(state, l.windowed).job_type = JobType::new("other").expect("a name");
            },
            &[(KeyType, "key \"often\" of \"mail\"")],
        ),
    ]
};

#[tokio::test]
async fn whatever_is_broken_by_hand_is_found_and_named() {
    let mut seen = BTreeSet::new();
    for (n, (plant, expected)) in PLANTED.iter().enumerate() {
        let (store, l) = store().await;
        let sound = verify(&store).await;
        assert!(sound.is_sound() && sound.warnings.is_empty(), "{sound}");
        assert_eq!(sound.jobs, JOBS.0);
        plant(&mut store.state("test").expect("it is open"), &l);

        let verified = verify(&store).await;

        let difference = difference(&verified, &format!("planting no. {n}"), expected);
        assert_eq!(difference, None);
        seen.extend(expected.iter().map(|(invariant, _)| *invariant));
    }
    // A record in memory is a value that was read already.
    let missed: Vec<_> = Invariant::ALL
        .into_iter()
        .filter(|invariant| !seen.contains(invariant) && !invariant.is_warning())
        .collect();
    assert_eq!(missed, [Invariant::Readable]);
}

#[tokio::test]
async fn a_lease_that_nobody_takes_back_is_a_warning() {
    let (store, l) = store().await;
    let long_ago = Duration::from_hours(1);
    {
        let mut state = store.state("test").expect("it is open");
        let record = live(&mut state, l.running.id);
        record.locked_until = record.locked_until.map(|end| {
            crate::Timestamp::from_millis(end.as_millis() - crate::time::millis(long_ago))
        });
    }

    let verified = verify(&store).await;

    assert!(
        verified.is_sound() && verified.warnings.len() == 1,
        "{verified}"
    );
}
