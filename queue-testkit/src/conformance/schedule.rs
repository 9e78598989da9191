//! When a job becomes due, and what `next_due` says about it.

use std::time::Duration;

use queue_runtime::job::{Due, NewJob};
use queue_runtime::time::Timestamp;

use super::jobs::{
    LEASE, MS, SCHEMA, SECOND, done, from_queues, job_type, of_types, queue, rerun, retry, snooze,
    worker,
};
use super::subject::Subject;

pub async fn a_delayed_job_is_not_a_millisecond_early(s: &Subject) {
    let job = NewJob {
        due: Due::After(SECOND * 10),
        ..s.job()
    };
    s.add(&job).await;
    let mut expected = s.picture().await;

    s.advance(SECOND * 10 - MS);
    assert_eq!(s.claim_all().await, []);
    s.shows(&expected).await;

    s.advance(MS);
    let run = s.take().await;
    assert_eq!(
        (run.id, run.run_at, run.claimed_at),
        (job.id, s.now(), s.now())
    );
    expected.claimed(&run, &worker("conformance@1"));
    s.shows(&expected).await;
}

pub async fn a_job_due_at_an_instant_waits_for_it(s: &Subject) {
    let at = s.now().saturating_add(SECOND * 10);
    let job = NewJob {
        due: Due::At(at),
        ..s.job()
    };
    s.add(&job).await;
    assert_eq!(s.record(job.id).await.run_at, at);

    s.advance(SECOND * 10 - MS);
    assert_eq!(s.claim_all().await, []);

    s.advance(MS);
    assert_eq!(s.take().await.id, job.id);
}

pub async fn an_instant_that_has_passed_means_at_once(s: &Subject) {
    let past = NewJob {
        due: Due::At(s.now().saturating_sub(SECOND * 3_600)),
        ..s.job()
    };
    let ancient = NewJob {
        due: Due::At(Timestamp::from_millis(i64::MIN)),
        ..s.job()
    };

    s.insert(&[past.clone(), ancient.clone()]).await;

    assert_eq!(s.record(past.id).await.run_at, s.now());
    assert_eq!(s.record(ancient.id).await.run_at, s.now());
    assert_eq!(s.claim_all().await.len(), 2);
}

pub async fn a_delay_beyond_the_end_of_time_waits_for_ever(s: &Subject) {
    let job = NewJob {
        due: Due::After(Duration::MAX),
        deadline: Some(Duration::MAX),
        ..s.job()
    };

    s.add(&job).await;

    let record = s.record(job.id).await;
    assert_eq!(record.run_at, Timestamp::from_millis(i64::MAX));
    assert_eq!(record.deadline, Some(Timestamp::from_millis(i64::MAX)));
    s.advance(SECOND * 1_000_000_000);
    assert_eq!(s.claim_all().await, []);
}

pub async fn a_deadline_counts_from_the_insert_not_from_the_due_time(s: &Subject) {
    let job = NewJob {
        due: Due::After(SECOND * 5),
        deadline: Some(SECOND * 30),
        ..s.job()
    };
    let deadline = Some(s.now().saturating_add(SECOND * 30));
    s.add(&job).await;
    assert_eq!(s.record(job.id).await.deadline, deadline);

    s.advance(SECOND * 5);
    assert_eq!(s.take().await.deadline, deadline);
}

/// Whether a deadline ends a job is decided by the rules, not by the store.
pub async fn a_job_past_its_deadline_is_still_handed_out(s: &Subject) {
    let job = NewJob {
        deadline: Some(SECOND),
        ..s.job()
    };
    s.add(&job).await;
    s.advance(SECOND * 2);

    let run = s.take().await;

    assert_eq!(run.id, job.id);
    assert!(run.deadline < Some(run.claimed_at));
}

pub async fn a_retry_waits_for_its_delay_from_the_settlement(s: &Subject) {
    let job = s.job();
    let run = s.running(&job).await;
    s.advance(SECOND * 7);
    s.apply(retry(&run, SECOND * 2)).await;
    assert_eq!(
        s.record(job.id).await.run_at,
        s.now().saturating_add(SECOND * 2)
    );

    s.advance(SECOND * 2 - MS);
    assert_eq!(s.claim_all().await, []);

    s.advance(MS);
    let again = s.take().await;
    assert_eq!((again.id, again.attempt), (job.id, 2));
}

pub async fn a_retry_without_delay_is_due_at_once(s: &Subject) {
    let job = s.job();
    let run = s.running(&job).await;

    s.apply(retry(&run, Duration::ZERO)).await;

    let again = s.take().await;
    assert_eq!(
        (again.id, again.attempt, again.run_at),
        (job.id, 2, s.now())
    );
}

pub async fn a_snooze_beyond_the_end_of_time_waits_for_ever(s: &Subject) {
    let job = s.job();
    let run = s.running(&job).await;

    s.apply(snooze(&run, Duration::MAX)).await;

    assert_eq!(
        s.record(job.id).await.run_at,
        Timestamp::from_millis(i64::MAX)
    );
    assert_eq!(s.claim_all().await, []);
}

pub async fn nothing_is_due_next_in_an_empty_store(s: &Subject) {
    assert_eq!(s.next_due().await, None);
}

pub async fn the_next_due_time_counts_down_to_zero_and_stays_there(s: &Subject) {
    let later = NewJob {
        due: Due::After(SECOND * 10),
        ..s.job()
    };
    let soon = NewJob {
        due: Due::After(SECOND * 3),
        ..s.job()
    };
    s.insert(&[later, soon]).await;
    assert_eq!(s.next_due().await, Some(SECOND * 3));

    s.advance(SECOND * 3 - MS);
    assert_eq!(s.next_due().await, Some(MS));

    s.advance(MS);
    assert_eq!(s.next_due().await, Some(Duration::ZERO));
    s.advance(SECOND);
    assert_eq!(s.next_due().await, Some(Duration::ZERO));

    s.take().await;
    assert_eq!(s.next_due().await, Some(SECOND * 6));
}

pub async fn only_claimable_jobs_are_due_next(s: &Subject) {
    let settled = s.job();
    s.settled(&settled, done).await;
    let called_off = s.job();
    s.add(&called_off).await;
    s.cancel(called_off.id).await;
    let running = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.running(&running).await;
    s.insert(&[
        NewJob {
            dedupe: rerun("k"),
            ..s.job()
        },
        NewJob {
            queue: queue("other"),
            ..s.job()
        },
        NewJob {
            job_type: job_type("unknown"),
            ..s.job()
        },
        NewJob {
            payload_schema: SCHEMA + 1,
            ..s.job()
        },
    ])
    .await;
    assert_eq!(s.next_due().await, None);

    s.add(&NewJob {
        due: Due::After(SECOND * 4),
        ..s.job()
    })
    .await;
    assert_eq!(s.next_due().await, Some(SECOND * 4));
}

pub async fn the_next_due_time_is_of_the_queues_and_types_that_were_named(s: &Subject) {
    let mail = NewJob {
        queue: queue("mail"),
        due: Due::After(SECOND * 4),
        ..s.job()
    };
    let bill = NewJob {
        job_type: job_type("bill"),
        due: Due::After(SECOND * 2),
        ..s.job()
    };
    s.insert(&[mail, bill]).await;
    let store = s.store();
    let next = async |request| store.next_due(&request).await.expect("next_due answers");

    let mail = from_queues(s.request(), &["mail", "default"]);
    assert_eq!(next(mail).await, Some(SECOND * 4));
    let bill = of_types(s.request(), &[("bill", SCHEMA)]);
    assert_eq!(next(bill).await, Some(SECOND * 2));
    let nothing = of_types(s.request(), &[]);
    assert_eq!(next(nothing).await, None);
    let nowhere = from_queues(s.request(), &[]);
    assert_eq!(next(nowhere).await, None);
}

pub async fn asking_for_the_next_due_time_changes_nothing(s: &Subject) {
    s.add(&s.job()).await;
    let expected = s.picture().await;
    s.advance(LEASE);

    s.next_due().await;

    s.shows(&expected).await;
}
