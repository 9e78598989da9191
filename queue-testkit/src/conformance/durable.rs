//! What a store that outlives its process remembers when it is opened again.
//!
//! For stores that promise it; a store that lives in its process leaves this family out.

use queue_runtime::job::{CacheKey, DedupeUntil, JobState, NewJob, OnDuplicate, Settled};
use queue_runtime::store::Inserted;

use super::jobs::{HOUR, LEASE, OTHER_REQUEST, REQUEST, SECOND, dead, done, held, once, rerun};
use super::subject::Subject;

pub async fn every_job_and_its_history_is_there_again(s: &Subject) {
    s.settled(&s.job(), done).await;
    s.settled(&s.job(), dead).await;
    s.running(&NewJob {
        dedupe: rerun("k"),
        deadline: Some(LEASE),
        ..s.job()
    })
    .await;
    s.insert(&[
        NewJob {
            dedupe: rerun("k"),
            ..s.job()
        },
        s.job(),
    ])
    .await;
    let expected = s.picture().await;

    s.reopen().await;

    s.shows(&expected).await;
}

pub async fn a_lease_outlives_the_process_and_its_token_still_holds(s: &Subject) {
    let run = s.running(&s.job()).await;

    s.reopen().await;

    assert_eq!(s.claim_all().await, []);
    s.advance(LEASE);
    assert_eq!(s.expired(10).await.len(), 1);
    assert_eq!(
        s.settle(&[done(&run)]).await,
        [Settled::Applied(JobState::Done)]
    );
}

pub async fn tokens_still_rise(s: &Subject) {
    let before = s.settled(&s.job(), done).await;
    s.advance(SECOND);
    s.prune(SECOND, 10).await;

    s.reopen().await;

    let after = s.running(&s.job()).await;
    assert!(
        after.token > before.token,
        "{} after {}",
        after.token,
        before.token
    );
}

pub async fn keys_and_windows_still_answer(s: &Subject) {
    let asked = NewJob {
        idempotency: once("i", REQUEST),
        ..s.job()
    };
    let windowed = || NewJob {
        dedupe: held("w", DedupeUntil::Window(HOUR), OnDuplicate::Keep),
        ..s.job()
    };
    let first = windowed();
    s.insert(&[asked.clone(), first.clone()]).await;
    let (again, other) = (windowed(), s.job());

    s.reopen().await;

    let state = JobState::Queued;
    let answered_by = |existing| Inserted::Duplicate {
        existing,
        state,
        payload_differs: false,
    };
    let repeated = NewJob {
        id: s.job().id,
        ..asked.clone()
    };
    let conflicting = NewJob {
        idempotency: once("i", OTHER_REQUEST),
        ..other
    };
    let replies = s.insert(&[repeated, again, conflicting]).await;
    let fields = vec!["amount".to_owned(), "user_id".to_owned()];
    let conflict = Inserted::Conflict {
        existing: asked.id,
        fields,
    };
    assert_eq!(
        replies,
        [answered_by(asked.id), answered_by(first.id), conflict]
    );
}

pub async fn versions_are_still_known(s: &Subject) {
    let cache = Some(CacheKey {
        key: "k".to_owned(),
        version: 7,
    });
    s.add(&NewJob { cache, ..s.job() }).await;

    s.reopen().await;

    assert_eq!(s.newest_version("k").await, Some(7));
}

pub async fn a_started_key_is_still_given_up_at_the_first_claim(s: &Subject) {
    let job = NewJob {
        dedupe: held("k", DedupeUntil::Started, OnDuplicate::Keep),
        ..s.job()
    };
    s.add(&job).await;

    s.reopen().await;

    s.take().await;
    assert_eq!(s.record(job.id).await.dedupe_key, None);
}
