//! What `insert` stores and answers, apart from keys.

use std::time::Duration;

use futures_util::FutureExt as _;
use queue_runtime::job::{CacheKey, Due, JobState, NewJob};
use queue_runtime::store::Inserted;

use super::jobs::{OTHER_REQUEST, REQUEST, SECOND, dead, done, job_type, keep, once, queue};
use super::picture::Picture;
use super::subject::Subject;

pub async fn every_field_is_stored_as_it_was_given(s: &Subject) {
    let job = NewJob {
        job_type: job_type("Mail.send:v2/x-y_z"),
        queue: queue("mail.bulk-1_a"),
        payload: r#"{ "b": 1, "a": [ ] }"#.to_owned(),
        payload_schema: 7,
        priority: -3,
        max_attempts: 9,
        due: Due::After(SECOND * 90),
        deadline: Some(SECOND * 3_600),
        dedupe: keep("order:17"),
        idempotency: once("request-17", REQUEST),
        cache: Some(CacheKey {
            key: "user:42".to_owned(),
            version: 12,
        }),
        trace_context: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
        ..s.job()
    };

    let id = s.add(&job).await;

    let now = s.now();
    let record = s.record(id).await;
    assert_eq!(record.run_at, now.saturating_add(SECOND * 90));
    assert_eq!(record.deadline, Some(now.saturating_add(SECOND * 3_600)));
    assert_eq!((record.created_at, record.updated_at), (now, now));
    let mut expected = Picture::default();
    expected.inserted(&job, now);
    s.shows(&expected).await;
}

pub async fn a_plain_job_has_no_key_and_no_history(s: &Subject) {
    let job = s.job();

    let id = s.add(&job).await;

    let record = s.record(id).await;
    assert_eq!(record.state, JobState::Queued);
    assert_eq!(
        (
            record.attempts,
            record.crashes,
            record.snoozes,
            record.generation
        ),
        (0, 0, 0, 0)
    );
    assert_eq!(
        (record.lock_token, record.last_outcome, record.started_at),
        (None, None, None)
    );
    let mut expected = Picture::default();
    expected.inserted(&job, s.now());
    s.shows(&expected).await;
}

pub async fn a_batch_is_answered_in_its_order(s: &Subject) {
    let existing = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    s.add(&existing).await;
    let asked = NewJob {
        idempotency: once("i", REQUEST),
        ..s.job()
    };
    s.add(&asked).await;
    let mut expected = s.picture().await;
    let first = s.job();
    let duplicate = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    let middle = s.job();
    let conflict = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        ..s.job()
    };
    let last = s.job();

    let batch = [first, duplicate, middle, conflict, last];
    let replies = s.insert(&batch).await;

    let [first, _, middle, _, last] = &batch;
    let state = JobState::Queued;
    assert_eq!(
        replies,
        [
            Inserted::New { id: first.id },
            Inserted::Duplicate {
                existing: existing.id,
                state,
                payload_differs: false
            },
            Inserted::New { id: middle.id },
            Inserted::Conflict {
                existing: asked.id,
                fields: vec!["amount".to_owned(), "user_id".to_owned()],
            },
            Inserted::New { id: last.id },
        ]
    );
    for job in [first, middle, last] {
        expected.inserted(job, s.now());
    }
    s.shows(&expected).await;
}

pub async fn an_empty_batch_stores_nothing(s: &Subject) {
    assert_eq!(s.insert(&[]).await, []);
    s.shows(&Picture::default()).await;
}

pub async fn a_repeated_id_is_new_again_and_changes_nothing(s: &Subject) {
    let job = s.job();
    s.add(&job).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    let repeated = NewJob {
        payload: r#"{"user_id":43}"#.to_owned(),
        priority: 9,
        ..job.clone()
    };
    assert_eq!(s.offer(&repeated).await, Inserted::New { id: job.id });

    s.shows(&expected).await;
}

pub async fn a_repeated_id_with_its_keys_is_new_and_not_its_own_duplicate(s: &Subject) {
    let job = NewJob {
        dedupe: keep("k"),
        idempotency: once("i", REQUEST),
        ..s.job()
    };
    s.add(&job).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.offer(&job).await, Inserted::New { id: job.id });

    s.shows(&expected).await;
}

pub async fn a_repeated_id_leaves_a_running_job_alone(s: &Subject) {
    let job = s.job();
    s.running(&job).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.offer(&job).await, Inserted::New { id: job.id });

    s.shows(&expected).await;
    assert_eq!(s.claim_all().await, []);
}

pub async fn a_repeated_id_does_not_run_a_final_job_again(s: &Subject) {
    let (well, badly) = (s.job(), s.job());
    s.settled(&well, done).await;
    s.settled(&badly, dead).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    let replies = s.insert(&[well.clone(), badly.clone()]).await;

    assert_eq!(
        replies,
        [
            Inserted::New { id: well.id },
            Inserted::New { id: badly.id }
        ]
    );
    s.shows(&expected).await;
    assert_eq!(s.claim_all().await, []);
}

pub async fn one_id_twice_in_a_batch_is_one_job(s: &Subject) {
    let job = s.job();
    let second = NewJob {
        payload: r#"{"user_id":43}"#.to_owned(),
        ..job.clone()
    };

    let replies = s.insert(&[job.clone(), second]).await;

    assert_eq!(
        replies,
        [Inserted::New { id: job.id }, Inserted::New { id: job.id }]
    );
    let mut expected = Picture::default();
    expected.inserted(&job, s.now());
    s.shows(&expected).await;
}

pub async fn a_batch_that_is_sent_twice_is_stored_once(s: &Subject) {
    let batch: Vec<NewJob> = (0..20).map(|_| s.job()).collect();
    let first = s.insert(&batch).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    let second = s.insert(&batch).await;

    assert_eq!(first, second);
    s.shows(&expected).await;
    assert_eq!(s.claim_all().await.len(), 20);
}

pub async fn a_payload_survives_byte_for_byte(s: &Subject) {
    let payloads = [
        r#"{}"#,
        r#"{ "spaced" :  [ 1 ,2 ] }"#,
        r#"{"twice":1,"twice":2}"#,
        r#"{"z":1,"a":2}"#,
        r#"{"nul":"a\u0000b"}"#,
        r#"{"escaped":"\u00e9\/\ud83d\ude00"}"#,
        "{\"raw\":\"é😀\u{2028}\u{202e} ñ ﷽\"}",
        r#"{"n":340282366920938463463374607431768211456}"#,
        r#"{"n":-9223372036854775809,"m":1e400,"k":0.1000000000000000055511151231257827}"#,
        r#"{"sql":"'; drop table jobs; --","quote":"\""}"#,
    ];
    for payload in payloads {
        let job = NewJob {
            payload: payload.to_owned(),
            ..s.job()
        };
        let id = s.add(&job).await;
        assert_eq!(s.record(id).await.payload, payload);

        let run = s.take().await;
        assert_eq!(run.payload, payload);

        s.apply(done(&run)).await;
        assert_eq!(s.record(id).await.payload, payload, "after it became final");
    }
}

pub async fn a_payload_of_a_mebibyte_survives(s: &Subject) {
    let payload = format!(r#"{{"text":"{}"}}"#, "0123456789abcdef".repeat(65_536));
    let job = NewJob {
        payload: payload.clone(),
        ..s.job()
    };

    let run = s.running(&job).await;

    assert!(
        run.payload == payload,
        "{} bytes became {}",
        payload.len(),
        run.payload.len()
    );
    assert!(s.record(job.id).await.payload == payload);
}

pub async fn numbers_at_their_bounds_survive(s: &Subject) {
    let low = NewJob {
        priority: -100,
        max_attempts: 1,
        payload_schema: 1,
        ..s.job()
    };
    let high = NewJob {
        priority: 100,
        max_attempts: u32::MAX,
        payload_schema: u32::MAX,
        cache: Some(CacheKey {
            key: "k".to_owned(),
            version: i64::MAX.unsigned_abs(),
        }),
        ..s.job()
    };

    s.insert(&[low.clone(), high.clone()]).await;

    let mut expected = Picture::default();
    expected.inserted(&low, s.now());
    expected.inserted(&high, s.now());
    s.shows(&expected).await;
    assert_eq!(s.newest_version("k").await, Some(i64::MAX.unsigned_abs()));
}

pub async fn a_large_batch_is_stored_whole(s: &Subject) {
    let batch: Vec<NewJob> = (0..1_000).map(|_| s.job()).collect();

    let replies = s.insert(&batch).await;

    let new: Vec<Inserted> = batch
        .iter()
        .map(|job| Inserted::New { id: job.id })
        .collect();
    assert_eq!(replies, new);
    let mut expected = Picture::default();
    for job in &batch {
        expected.inserted(job, s.now());
    }
    s.shows(&expected).await;
}

/// The future is polled once and dropped, at a point that depends on the store.
pub async fn a_dropped_insert_can_be_repeated(s: &Subject) {
    let batch: Vec<NewJob> = (0..10).map(|_| s.job()).collect();
    let store = s.store();
    let _ = store.insert(&batch).now_or_never();

    let replies = s.insert(&batch).await;

    let new: Vec<Inserted> = batch
        .iter()
        .map(|job| Inserted::New { id: job.id })
        .collect();
    assert_eq!(replies, new);
    let mut expected = Picture::default();
    for job in &batch {
        expected.inserted(job, s.now());
    }
    s.shows(&expected).await;
}

pub async fn jobs_inserted_later_are_dated_later(s: &Subject) {
    let (early, late) = (s.job(), s.job());
    s.add(&early).await;
    let mut expected = s.picture().await;
    s.advance(Duration::from_millis(1));

    s.add(&late).await;

    expected.inserted(&late, s.now());
    s.shows(&expected).await;
    assert!(s.record(late.id).await.created_at > s.record(early.id).await.created_at);
}
