//! Idempotency keys: one caller request gives one job, remembered for a window.

use std::time::Duration;

use queue_runtime::job::{CacheKey, Claimed, JobState, NewJob, Settlement};
use queue_runtime::store::{Inserted, Replaying};

use super::jobs::{
    HOUR, MS, OTHER_REQUEST, REQUEST, SECOND, called_off, dead, done, job_type, keep, once,
    replace, retry,
};
use super::subject::Subject;

pub(super) fn asked(s: &Subject) -> NewJob {
    NewJob {
        idempotency: once("i", REQUEST),
        ..s.job()
    }
}

pub(super) fn answered_by(job: &NewJob, state: JobState) -> Inserted {
    Inserted::Duplicate {
        existing: job.id,
        state,
        payload_differs: false,
    }
}

pub(super) fn conflict(job: &NewJob, fields: &[&str]) -> Inserted {
    let fields = fields.iter().map(|&field| field.to_owned()).collect();
    Inserted::Conflict {
        existing: job.id,
        fields,
    }
}

pub async fn a_repeated_request_is_answered_by_its_job_in_every_state(s: &Subject) {
    let job = asked(s);
    s.add(&job).await;
    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&job, JobState::Queued)
    );
    let run = s.take().await;
    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&job, JobState::Processing)
    );
    s.apply(done(&run)).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.offer(&asked(s)).await, answered_by(&job, JobState::Done));

    s.shows(&expected).await;
    assert_eq!(s.record(job.id).await.idempotency_key.as_deref(), Some("i"));
}

/// A job tells which request it is for, whatever becomes of it and of the key's window.
pub async fn a_job_shows_its_key_in_every_state(s: &Subject) {
    let job = asked(s);
    let shows = async |what: &str| {
        let key = s.record(job.id).await.idempotency_key;
        assert_eq!(key.as_deref(), Some("i"), "after {what}");
    };
    s.add(&job).await;
    shows("the insert").await;
    let run = s.take().await;
    assert_eq!(run.idempotency_key.as_deref(), Some("i"));
    shows("the claim").await;
    s.apply(retry(&run, Duration::ZERO)).await;
    shows("a retry").await;
    for (settlement, what) in [
        (dead as fn(&Claimed) -> Settlement, "a failure for good"),
        (called_off, "a stop"),
        (done, "a success"),
    ] {
        let run = s.take().await;
        assert_eq!(run.idempotency_key.as_deref(), Some("i"), "before {what}");
        s.apply(settlement(&run)).await;
        shows(what).await;
        if s.replay(job.id).await == Replaying::Replayed {
            shows("the replay").await;
        }
    }
    s.advance(HOUR);
    s.prune(HOUR * 2, 10).await;
    shows("the end of its window").await;
    let [listed] = &s
        .store()
        .finished(JobState::Done, None, 10)
        .await
        .expect("finished answers")[..]
    else {
        panic!("one job is done")
    };
    assert_eq!(listed.idempotency_key.as_deref(), Some("i"));
}

pub async fn a_repeated_request_hears_of_a_dead_letter_and_of_a_cancel(s: &Subject) {
    for (settlement, state) in [
        (dead as fn(&Claimed) -> Settlement, JobState::DeadLetter),
        (called_off, JobState::Cancelled),
    ] {
        let job = NewJob {
            idempotency: once(state.as_str(), REQUEST),
            ..s.job()
        };
        s.settled(&job, settlement).await;

        let again = NewJob {
            id: s.job().id,
            ..job.clone()
        };
        assert_eq!(s.offer(&again).await, answered_by(&job, state));
    }
}

/// The fingerprint says whether a request is the same; the payload text may be written otherwise.
pub async fn a_repeated_request_is_known_by_its_fingerprint_not_its_text(s: &Subject) {
    let job = asked(s);
    s.add(&job).await;

    let spaced = NewJob {
        payload: r#"{ "user_id" : 42 }"#.to_owned(),
        ..asked(s)
    };
    assert_eq!(s.offer(&spaced).await, answered_by(&job, JobState::Queued));
}

pub async fn another_request_under_the_key_is_a_conflict_that_names_fields_only(s: &Subject) {
    let job = asked(s);
    s.add(&job).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    let other = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        ..s.job()
    };
    let reply = s.offer(&other).await;

    assert_eq!(reply, conflict(&job, &["amount", "user_id"]));
    s.shows(&expected).await;
}

pub async fn a_conflict_names_fields_that_only_one_request_has(s: &Subject) {
    let job = asked(s);
    s.add(&job).await;
    let cases = [
        (r#"{"amount":"8f0c","user_id":"19be"}"#, vec!["note"]),
        (
            r#"{"amount":"8f0c","extra":"00","note":"77aa","user_id":"19be"}"#,
            vec!["extra"],
        ),
        (r#"{}"#, vec!["amount", "note", "user_id"]),
        (
            r#"{"Note":"77aa","amount":"1","user_id":"19be"}"#,
            vec!["Note", "amount", "note"],
        ),
    ];
    for (fingerprint, fields) in cases {
        let other = NewJob {
            idempotency: once("i", fingerprint),
            ..s.job()
        };
        assert_eq!(
            s.offer(&other).await,
            conflict(&job, &fields),
            "{fingerprint}"
        );
    }
}

pub async fn a_conflict_is_answered_also_after_the_job_is_final_and_gone(s: &Subject) {
    let job = asked(s);
    s.settled(&job, done).await;
    let other = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        ..s.job()
    };
    assert_eq!(
        s.offer(&other).await,
        conflict(&job, &["amount", "user_id"])
    );

    s.advance(SECOND);
    s.prune(MS, 10).await;
    assert_eq!(
        s.offer(&other).await,
        conflict(&job, &["amount", "user_id"])
    );
    assert_eq!(s.picture().await.jobs().len(), 0);
}

pub async fn a_conflict_does_not_raise_a_version(s: &Subject) {
    s.add(&asked(s)).await;
    let cache = Some(CacheKey {
        key: "c".to_owned(),
        version: 9,
    });

    let other = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        cache,
        ..s.job()
    };
    s.offer(&other).await;

    assert_eq!(s.newest_version("c").await, None);
}

pub async fn a_key_belongs_to_its_job_type(s: &Subject) {
    let mail = asked(s);
    let bill = NewJob {
        job_type: job_type("bill"),
        idempotency: once("i", OTHER_REQUEST),
        ..s.job()
    };

    let replies = s.insert(&[mail.clone(), bill.clone()]).await;

    assert_eq!(
        replies,
        [Inserted::New { id: mail.id }, Inserted::New { id: bill.id }]
    );
}

pub async fn keys_are_compared_byte_for_byte(s: &Subject) {
    let long = "k".repeat(1_024);
    let keys = [
        "i",
        "I",
        "i ",
        "é",
        "e\u{301}",
        "1",
        "01",
        "a'b",
        long.as_str(),
    ];
    for key in keys {
        let job = NewJob {
            idempotency: once(key, REQUEST),
            ..s.job()
        };
        assert_eq!(s.offer(&job).await, Inserted::New { id: job.id }, "{key:?}");
        let again = NewJob {
            id: s.job().id,
            ..job.clone()
        };
        assert_eq!(
            s.offer(&again).await,
            answered_by(&job, JobState::Queued),
            "{key:?}"
        );
    }
}

pub async fn equal_requests_in_one_batch_are_one_job(s: &Subject) {
    let (first, second) = (asked(s), asked(s));
    let third = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        ..s.job()
    };

    let replies = s.insert(&[first.clone(), second, third]).await;

    let new = Inserted::New { id: first.id };
    let duplicate = answered_by(&first, JobState::Queued);
    assert_eq!(
        replies,
        [new, duplicate, conflict(&first, &["amount", "user_id"])]
    );
    assert_eq!(s.picture().await.jobs().len(), 1);
}

pub async fn a_key_is_bound_to_the_job_that_answers_by_dedupe(s: &Subject) {
    let existing = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    s.add(&existing).await;
    let expected = s.picture().await;
    let both = NewJob {
        dedupe: keep("k"),
        ..asked(s)
    };
    assert_eq!(
        s.offer(&both).await,
        answered_by(&existing, JobState::Queued)
    );
    s.shows(&expected).await;

    assert_eq!(
        s.offer(&asked(s)).await,
        answered_by(&existing, JobState::Queued)
    );
    let other = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        ..s.job()
    };
    assert_eq!(
        s.offer(&other).await,
        conflict(&existing, &["amount", "user_id"])
    );
    s.shows(&expected).await;
}

pub async fn the_idempotency_key_answers_before_the_dedupe_key(s: &Subject) {
    let by_request = asked(s);
    let by_key = NewJob {
        dedupe: replace("k"),
        ..s.job()
    };
    s.insert(&[by_request.clone(), by_key.clone()]).await;
    let expected = s.picture().await;
    s.advance(SECOND);
    let payload = r#"{"user_id":43}"#.to_owned();

    let both = NewJob {
        dedupe: replace("k"),
        payload: payload.clone(),
        ..asked(s)
    };
    assert_eq!(
        s.offer(&both).await,
        answered_by(&by_request, JobState::Queued)
    );
    let idempotency = once("i", OTHER_REQUEST);
    let other = NewJob {
        dedupe: replace("k"),
        payload,
        idempotency,
        ..s.job()
    };
    assert_eq!(
        s.offer(&other).await,
        conflict(&by_request, &["amount", "user_id"])
    );

    s.shows(&expected).await;
}
