//! Dedupe keys that are held for a window, whatever becomes of the job.

use std::time::Duration;

use queue_runtime::job::{DedupeUntil, JobState, NewJob, OnDuplicate};
use queue_runtime::store::Inserted;

use super::jobs::{LEASE, MS, SECOND, called_off, dead, done, held, job_type, retry};
use super::subject::Subject;

const WINDOW: Duration = Duration::from_secs(600);

fn windowed(s: &Subject, on_duplicate: OnDuplicate) -> NewJob {
    NewJob {
        dedupe: held("k", DedupeUntil::Window(WINDOW), on_duplicate),
        ..s.job()
    }
}

fn answered_by(job: &NewJob, state: JobState, payload_differs: bool) -> Inserted {
    Inserted::Duplicate {
        existing: job.id,
        state,
        payload_differs,
    }
}

pub async fn a_window_answers_to_its_end_and_no_longer(s: &Subject) {
    let first = windowed(s, OnDuplicate::Keep);
    s.add(&first).await;
    s.advance(WINDOW - MS);
    let expected = s.picture().await;
    let early = windowed(s, OnDuplicate::Keep);
    assert_eq!(
        s.offer(&early).await,
        answered_by(&first, JobState::Queued, false)
    );
    s.shows(&expected).await;

    s.advance(MS);
    let late = windowed(s, OnDuplicate::Keep);
    assert_eq!(s.offer(&late).await, Inserted::New { id: late.id });

    s.advance(WINDOW - MS);
    let last = windowed(s, OnDuplicate::Keep);
    assert_eq!(
        s.offer(&last).await,
        answered_by(&late, JobState::Queued, false)
    );
}

/// A duplicate inside the window does not make it longer.
pub async fn a_window_counts_from_the_job_that_was_stored(s: &Subject) {
    let first = windowed(s, OnDuplicate::Keep);
    s.add(&first).await;
    s.advance(WINDOW / 2);
    s.offer(&windowed(s, OnDuplicate::Keep)).await;
    s.advance(WINDOW / 2);

    let late = windowed(s, OnDuplicate::Keep);
    assert_eq!(s.offer(&late).await, Inserted::New { id: late.id });
}

pub async fn a_window_outlives_its_job_in_every_state(s: &Subject) {
    let first = windowed(s, OnDuplicate::Keep);
    let again = windowed(s, OnDuplicate::Keep);
    s.add(&first).await;
    assert_eq!(
        s.offer(&again).await,
        answered_by(&first, JobState::Queued, false)
    );
    let run = s.take().await;
    assert_eq!(
        s.offer(&again).await,
        answered_by(&first, JobState::Processing, false)
    );
    s.apply(retry(&run, Duration::ZERO)).await;
    assert_eq!(
        s.offer(&again).await,
        answered_by(&first, JobState::Queued, false)
    );
    let run = s.take().await;
    s.apply(dead(&run)).await;
    assert_eq!(
        s.offer(&again).await,
        answered_by(&first, JobState::DeadLetter, false)
    );
    assert_eq!(s.picture().await.jobs().len(), 1);
}

pub async fn a_window_answers_for_a_job_that_was_pruned(s: &Subject) {
    let first = windowed(s, OnDuplicate::Keep);
    s.settled(&first, done).await;
    s.advance(SECOND);
    assert_eq!(s.prune(MS, 10).await.jobs, 1);

    let again = windowed(s, OnDuplicate::Keep);
    assert_eq!(
        s.offer(&again).await,
        answered_by(&first, JobState::Done, false)
    );

    assert_eq!(s.picture().await.jobs().len(), 0);
}

pub async fn a_window_job_stores_no_dedupe_key(s: &Subject) {
    let job = windowed(s, OnDuplicate::Keep);
    s.add(&job).await;

    let record = s.record(job.id).await;
    assert_eq!((record.dedupe_key, record.dedupe_slot), (None, 0));
}

pub async fn replace_rewrites_a_waiting_job_within_its_window(s: &Subject) {
    let first = windowed(s, OnDuplicate::Keep);
    s.add(&first).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);
    let payload = r#"{"user_id":43}"#.to_owned();
    let new = NewJob {
        payload,
        priority: 4,
        ..windowed(s, OnDuplicate::Replace)
    };

    assert_eq!(
        s.offer(&new).await,
        answered_by(&first, JobState::Queued, true)
    );

    let record = expected.job(first.id);
    record.payload.clone_from(&new.payload);
    record.priority = 4;
    record.updated_at = s.now();
    s.shows(&expected).await;
}

pub async fn replace_leaves_a_running_or_final_job_of_a_window_alone(s: &Subject) {
    let first = windowed(s, OnDuplicate::Keep);
    let run = s.running(&first).await;
    let payload = r#"{"user_id":43}"#.to_owned();
    let new = NewJob {
        payload,
        ..windowed(s, OnDuplicate::Replace)
    };
    let expected = s.picture().await;
    s.advance(SECOND);
    assert_eq!(
        s.offer(&new).await,
        answered_by(&first, JobState::Processing, true)
    );
    s.shows(&expected).await;

    s.apply(called_off(&run)).await;
    let expected = s.picture().await;
    s.advance(SECOND);
    assert_eq!(
        s.offer(&new).await,
        answered_by(&first, JobState::Cancelled, true)
    );
    s.shows(&expected).await;
}

pub async fn rerun_stores_no_second_job_within_a_window(s: &Subject) {
    let first = windowed(s, OnDuplicate::Rerun);
    s.running(&first).await;
    let expected = s.picture().await;

    let again = windowed(s, OnDuplicate::Rerun);
    assert_eq!(
        s.offer(&again).await,
        answered_by(&first, JobState::Processing, false)
    );

    s.shows(&expected).await;
}

pub async fn a_window_belongs_to_its_job_type(s: &Subject) {
    let mail = windowed(s, OnDuplicate::Keep);
    let bill = NewJob {
        job_type: job_type("bill"),
        ..windowed(s, OnDuplicate::Keep)
    };

    let replies = s.insert(&[mail.clone(), bill.clone()]).await;

    assert_eq!(
        replies,
        [Inserted::New { id: mail.id }, Inserted::New { id: bill.id }]
    );
}

pub async fn equal_window_keys_in_one_batch_see_each_other(s: &Subject) {
    let (first, second) = (
        windowed(s, OnDuplicate::Keep),
        windowed(s, OnDuplicate::Keep),
    );

    let replies = s.insert(&[first.clone(), second]).await;

    let duplicate = answered_by(&first, JobState::Queued, false);
    assert_eq!(replies, [Inserted::New { id: first.id }, duplicate]);
    assert_eq!(s.picture().await.jobs().len(), 1);
}

pub async fn each_newcomer_brings_its_own_window(s: &Subject) {
    let short = DedupeUntil::Window(SECOND);
    let first = NewJob {
        dedupe: held("k", short, OnDuplicate::Keep),
        ..s.job()
    };
    s.add(&first).await;
    s.advance(SECOND);
    let second = windowed(s, OnDuplicate::Keep);
    s.add(&second).await;
    s.advance(LEASE);

    let third = NewJob {
        dedupe: held("k", short, OnDuplicate::Keep),
        ..s.job()
    };
    assert_eq!(
        s.offer(&third).await,
        answered_by(&second, JobState::Queued, false)
    );
}
