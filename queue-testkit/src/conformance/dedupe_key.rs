//! How long a dedupe key is held, and which keys are equal.

use std::time::Duration;

use queue_runtime::job::{DedupeUntil, JobState, NewJob, OnDuplicate};
use queue_runtime::store::Inserted;

use super::dedupe::{running, waiting};
use super::jobs::{
    LEASE, called_off, dead, dedupe, done, held, job_type, keep, queue, rerun, rescue, retry,
    worker,
};
use super::subject::Subject;

pub async fn a_final_job_frees_its_key(s: &Subject) {
    for settlement in [done, dead, called_off] {
        let job = NewJob {
            dedupe: keep("k"),
            ..s.job()
        };
        s.settled(&job, settlement).await;
        assert_eq!(
            s.record(job.id).await.dedupe_key.as_deref(),
            Some("k"),
            "kept for a replay"
        );
    }
    assert_eq!(s.picture().await.jobs().len(), 3);
}

pub async fn a_key_is_held_through_retry_rescue_and_hand_back(s: &Subject) {
    let job = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    let second = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    let run = s.running(&job).await;
    s.apply(retry(&run, Duration::ZERO)).await;
    let run = s.take().await;
    s.advance(LEASE);
    s.apply(rescue(&run)).await;
    let run = s.take().await;
    s.apply(super::jobs::handed_back(&run)).await;

    let reply = s.offer(&second).await;

    let state = JobState::Queued;
    let kept = Inserted::Duplicate {
        existing: job.id,
        state,
        payload_differs: false,
    };
    assert_eq!(reply, kept);
}

pub async fn a_key_belongs_to_its_job_type(s: &Subject) {
    let mail = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    let bill = NewJob {
        dedupe: keep("k"),
        job_type: job_type("bill"),
        ..s.job()
    };

    let replies = s.insert(&[mail.clone(), bill.clone()]).await;

    assert_eq!(
        replies,
        [Inserted::New { id: mail.id }, Inserted::New { id: bill.id }]
    );
}

pub async fn a_key_is_the_same_in_every_queue(s: &Subject) {
    let here = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    let there = NewJob {
        queue: queue("other"),
        ..here.clone()
    };
    s.add(&here).await;
    let expected = s.picture().await;

    let there = NewJob {
        id: s.job().id,
        ..there
    };
    let reply = s.offer(&there).await;

    let state = JobState::Queued;
    let kept = Inserted::Duplicate {
        existing: here.id,
        state,
        payload_differs: false,
    };
    assert_eq!(reply, kept);
    s.shows(&expected).await;
}

pub async fn keys_are_compared_byte_for_byte(s: &Subject) {
    let long = "k".repeat(1_024);
    let longer = format!("{}l", "k".repeat(1_023));
    let keys = [
        "k", "K", "k ", " k", "k\t", "é", "e\u{301}", "%", "_", "'", "\\", "1", "01", "1.0",
    ];
    let keys = keys.into_iter().chain([long.as_str(), longer.as_str()]);
    let jobs: Vec<NewJob> = keys
        .map(|key| NewJob {
            dedupe: keep(key),
            ..s.job()
        })
        .collect();

    let replies = s.insert(&jobs).await;

    let new: Vec<Inserted> = jobs
        .iter()
        .map(|job| Inserted::New { id: job.id })
        .collect();
    assert_eq!(replies, new);
    for job in &jobs {
        let again = NewJob {
            id: s.job().id,
            ..job.clone()
        };
        let state = JobState::Queued;
        let kept = Inserted::Duplicate {
            existing: job.id,
            state,
            payload_differs: false,
        };
        assert_eq!(s.offer(&again).await, kept);
    }
}

pub async fn equal_payload_texts_do_not_differ(s: &Subject) {
    let job = waiting(s).await;
    let spaced = NewJob {
        payload: r#"{"user_id": 42}"#.to_owned(),
        ..job.clone()
    };

    for (newcomer, payload_differs) in [(job.clone(), false), (spaced, true)] {
        let newcomer = NewJob {
            id: s.job().id,
            ..newcomer
        };
        let state = JobState::Queued;
        let kept = Inserted::Duplicate {
            existing: job.id,
            state,
            payload_differs,
        };
        assert_eq!(s.offer(&newcomer).await, kept);
    }
}

pub async fn equal_keys_in_one_batch_see_each_other(s: &Subject) {
    for on_duplicate in [OnDuplicate::Keep, OnDuplicate::Rerun, OnDuplicate::Replace] {
        let key = format!("{on_duplicate:?}");
        let job = |payload: &str| NewJob {
            payload: payload.to_owned(),
            dedupe: dedupe(&key, on_duplicate),
            ..s.job()
        };
        let batch = [job(r#"{"n":1}"#), job(r#"{"n":2}"#), job(r#"{"n":2}"#)];
        let mut expected = s.picture().await;

        let replies = s.insert(&batch).await;

        let replaces = on_duplicate == OnDuplicate::Replace;
        let existing = batch[0].id;
        let state = JobState::Queued;
        let duplicate = |payload_differs| Inserted::Duplicate {
            existing,
            state,
            payload_differs,
        };
        let new = Inserted::New { id: existing };
        assert_eq!(
            replies,
            [new, duplicate(true), duplicate(!replaces)],
            "{on_duplicate:?}"
        );
        let record = expected.inserted(&batch[0], s.now());
        if replaces {
            record.payload = r#"{"n":2}"#.to_owned();
        }
        s.shows(&expected).await;
    }
}

pub async fn one_batch_can_fill_the_slot_behind_only_once(s: &Subject) {
    running(s).await;
    let batch: Vec<NewJob> = (0..3)
        .map(|_| NewJob {
            dedupe: rerun("k"),
            ..s.job()
        })
        .collect();
    let mut expected = s.picture().await;

    let replies = s.insert(&batch).await;

    let existing = batch[0].id;
    let state = JobState::Queued;
    let duplicate = Inserted::Duplicate {
        existing,
        state,
        payload_differs: false,
    };
    assert_eq!(
        replies,
        [Inserted::New { id: existing }, duplicate.clone(), duplicate]
    );
    expected.inserted(&batch[0], s.now()).dedupe_slot = 1;
    s.shows(&expected).await;
}

pub async fn a_key_held_until_the_start_is_free_at_the_first_claim(s: &Subject) {
    let until_start = || NewJob {
        dedupe: held("k", DedupeUntil::Started, OnDuplicate::Keep),
        ..s.job()
    };
    let (first, second) = (until_start(), until_start());
    s.add(&first).await;
    let state = JobState::Queued;
    let kept = Inserted::Duplicate {
        existing: first.id,
        state,
        payload_differs: false,
    };
    assert_eq!(s.offer(&second).await, kept);
    let mut expected = s.picture().await;

    let run = s.take().await;

    expected.claimed(&run, &worker("conformance@1")).dedupe_key = None;
    s.shows(&expected).await;
    assert_eq!(s.offer(&second).await, Inserted::New { id: second.id });
    expected.inserted(&second, s.now());
    s.shows(&expected).await;
}

pub async fn a_retry_does_not_take_a_started_key_again(s: &Subject) {
    let until_start = || NewJob {
        dedupe: held("k", DedupeUntil::Started, OnDuplicate::Rerun),
        ..s.job()
    };
    let first = until_start();
    let run = s.running(&first).await;
    s.apply(retry(&run, Duration::ZERO)).await;
    assert_eq!(s.record(first.id).await.dedupe_key, None);

    let second = until_start();
    assert_eq!(s.offer(&second).await, Inserted::New { id: second.id });

    assert_eq!(s.record(second.id).await.dedupe_slot, 0);
    assert_eq!(s.claim_all().await.len(), 2, "both run");
}

pub async fn jobs_without_a_key_are_never_duplicates(s: &Subject) {
    let jobs: Vec<NewJob> = (0..5).map(|_| s.job()).collect();
    let replies = s.insert(&jobs).await;
    assert!(
        replies
            .iter()
            .all(|reply| matches!(reply, Inserted::New { .. })),
        "{replies:?}"
    );
}
