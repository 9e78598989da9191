//! How long an idempotency key answers, and for which job.

use std::time::Duration;

use queue_runtime::job::{
    Claimed, DedupeUntil, Fingerprint, Idempotency, JobState, NewJob, OnDuplicate, Settlement,
};
use queue_runtime::store::Inserted;

use super::idempotency::{answered_by, asked, conflict};
use super::jobs::{
    HOUR, MS, OTHER_REQUEST, REQUEST, SECOND, called_off, dead, done, held, keep, once,
};
use super::subject::Subject;

pub async fn a_key_answers_to_the_end_of_its_window_and_no_longer(s: &Subject) {
    let job = asked(s);
    s.settled(&job, done).await;
    s.advance(HOUR - MS);
    assert_eq!(s.offer(&asked(s)).await, answered_by(&job, JobState::Done));

    s.advance(MS);
    let late = asked(s);
    assert_eq!(s.offer(&late).await, Inserted::New { id: late.id });

    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&late, JobState::Queued)
    );
    assert_eq!(s.record(job.id).await.state, JobState::Done);
}

/// The window counts from the insert, not from when the job became final.
pub async fn a_window_counts_from_the_insert(s: &Subject) {
    let job = asked(s);
    s.add(&job).await;
    s.advance(HOUR / 2);
    let run = s.take().await;
    s.apply(done(&run)).await;
    s.advance(HOUR / 2 - MS);
    assert_eq!(s.offer(&asked(s)).await, answered_by(&job, JobState::Done));

    s.advance(MS);
    let late = asked(s);
    assert_eq!(s.offer(&late).await, Inserted::New { id: late.id });
}

pub async fn a_key_outlives_its_window_while_the_job_is_unfinished(s: &Subject) {
    let job = asked(s);
    s.add(&job).await;
    s.advance(HOUR * 5);
    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&job, JobState::Queued)
    );
    let other = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        ..s.job()
    };
    assert_eq!(
        s.offer(&other).await,
        conflict(&job, &["amount", "user_id"])
    );
    let run = s.take().await;
    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&job, JobState::Processing)
    );

    s.apply(done(&run)).await;
    let late = asked(s);
    assert_eq!(
        s.offer(&late).await,
        Inserted::New { id: late.id },
        "its window passed long ago"
    );
}

pub async fn a_pruned_job_still_answers_within_its_window(s: &Subject) {
    for (settlement, state) in [
        (done as fn(&Claimed) -> Settlement, JobState::Done),
        (dead, JobState::DeadLetter),
        (called_off, JobState::Cancelled),
    ] {
        let job = NewJob {
            idempotency: once(state.as_str(), REQUEST),
            ..s.job()
        };
        s.settled(&job, settlement).await;
        s.advance(SECOND);
        let pruned = s.prune(MS, 10).await;
        assert_eq!((pruned.jobs, pruned.idempotency_keys), (1, 0));

        let again = NewJob {
            id: s.job().id,
            ..job.clone()
        };
        assert_eq!(s.offer(&again).await, answered_by(&job, state));
    }
    assert_eq!(s.picture().await.jobs().len(), 0);
}

pub async fn a_job_cancelled_while_it_waits_closes_its_key(s: &Subject) {
    let job = asked(s);
    s.add(&job).await;
    s.cancel(job.id).await;
    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&job, JobState::Cancelled)
    );

    s.advance(HOUR);
    let late = asked(s);
    assert_eq!(s.offer(&late).await, Inserted::New { id: late.id });
}

pub async fn a_replayed_job_holds_its_key_again(s: &Subject) {
    let job = asked(s);
    s.settled(&job, dead).await;
    s.replay(job.id).await;
    s.advance(HOUR * 2);

    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&job, JobState::Queued)
    );

    let run = s.take().await;
    s.apply(done(&run)).await;
    let late = asked(s);
    assert_eq!(s.offer(&late).await, Inserted::New { id: late.id });
}

/// A replay keeps the job, but the key may have gone to another job in between.
pub async fn a_replayed_job_does_not_take_its_key_back(s: &Subject) {
    let first = asked(s);
    s.settled(&first, dead).await;
    s.advance(HOUR);
    let second = asked(s);
    s.add(&second).await;

    s.replay(first.id).await;

    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&second, JobState::Queued)
    );
}

pub async fn a_bound_key_closes_with_the_job_it_was_bound_to(s: &Subject) {
    let existing = NewJob {
        dedupe: keep("k"),
        idempotency: once("own", REQUEST),
        ..s.job()
    };
    s.add(&existing).await;
    s.advance(HOUR / 2);
    s.offer(&NewJob {
        dedupe: keep("k"),
        ..asked(s)
    })
    .await;
    let run = s.take().await;
    s.apply(done(&run)).await;

    s.advance(HOUR / 2);
    let own = NewJob {
        idempotency: once("own", REQUEST),
        ..s.job()
    };
    assert_eq!(
        s.offer(&own).await,
        Inserted::New { id: own.id },
        "an hour after its insert"
    );
    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&existing, JobState::Done)
    );

    s.advance(HOUR / 2);
    let late = asked(s);
    assert_eq!(
        s.offer(&late).await,
        Inserted::New { id: late.id },
        "an hour after it was bound"
    );
}

pub async fn a_key_bound_to_a_final_job_lasts_its_window(s: &Subject) {
    let window = Some(DedupeUntil::Window(HOUR * 9));
    let windowed = |idempotency| NewJob {
        dedupe: window.and_then(|until| held("k", until, OnDuplicate::Keep)),
        idempotency,
        ..s.job()
    };
    let existing = windowed(None);
    s.settled(&existing, done).await;
    assert_eq!(
        s.offer(&windowed(once("i", REQUEST))).await,
        answered_by(&existing, JobState::Done)
    );

    s.advance(HOUR - MS);
    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&existing, JobState::Done)
    );
    s.advance(MS);
    let late = asked(s);
    assert_eq!(s.offer(&late).await, Inserted::New { id: late.id });
}

pub async fn a_prune_removes_keys_whose_window_has_passed_and_no_others(s: &Subject) {
    let with = |key: &str, window| {
        let fingerprint = Fingerprint::from_stored(REQUEST);
        let idempotency = Some(Idempotency {
            key: key.to_owned(),
            fingerprint,
            window,
        });
        NewJob {
            idempotency,
            ..s.job()
        }
    };
    let (short, long, live) = (
        with("short", SECOND),
        with("long", HOUR),
        with("live", SECOND),
    );
    s.settled(&short, done).await;
    s.settled(&long, done).await;
    s.add(&live).await;
    s.advance(SECOND - MS);
    assert_eq!(s.prune(Duration::MAX, 10).await.idempotency_keys, 0);

    s.advance(MS);
    let pruned = s.prune(Duration::MAX, 10).await;

    assert_eq!((pruned.jobs, pruned.idempotency_keys), (0, 1));
    let again = |job: &NewJob| NewJob {
        id: s.job().id,
        ..job.clone()
    };
    assert_eq!(
        s.offer(&again(&long)).await,
        answered_by(&long, JobState::Done)
    );
    assert_eq!(
        s.offer(&again(&live)).await,
        answered_by(&live, JobState::Queued)
    );
    let new = again(&short);
    assert_eq!(s.offer(&new).await, Inserted::New { id: new.id });
}

pub async fn a_prune_removes_no_more_keys_than_its_limit(s: &Subject) {
    let keyed = |n: usize| NewJob {
        idempotency: once(&format!("i{n}"), REQUEST),
        ..s.job()
    };
    let jobs: Vec<NewJob> = (0..5).map(keyed).collect();
    s.insert(&jobs).await;
    for run in s.claim_all().await {
        s.apply(done(&run)).await;
    }
    s.advance(HOUR);

    assert_eq!(s.prune(Duration::MAX, 3).await.idempotency_keys, 3);
    assert_eq!(s.prune(Duration::MAX, 3).await.idempotency_keys, 2);
    assert_eq!(s.prune(Duration::MAX, 3).await.idempotency_keys, 0);
}
