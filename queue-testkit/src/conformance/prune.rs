//! Keeping history short: retention of final jobs, and keys and windows whose time has passed.

use std::time::Duration;

use queue_runtime::job::{DedupeUntil, NewJob, OnDuplicate};
use queue_runtime::store::{Pruned, Retention};

use super::jobs::{HOUR, MS, REQUEST, SECOND, called_off, dead, done, held, once, rerun, retry};
use super::picture::Picture;
use super::subject::Subject;

pub async fn each_final_state_has_a_retention_of_its_own(s: &Subject) {
    let (well, badly, off) = (s.job(), s.job(), s.job());
    s.settled(&well, done).await;
    s.settled(&badly, dead).await;
    s.settled(&off, called_off).await;
    let mut expected = s.picture().await;
    let retention = Retention {
        done: SECOND,
        cancelled: SECOND * 2,
        dead_letter: SECOND * 3,
    };
    let prune = async || {
        s.store()
            .prune(&retention, 10)
            .await
            .expect("prune answers")
            .jobs
    };

    for gone in [well.id, off.id, badly.id] {
        s.advance(SECOND - MS);
        assert_eq!(prune().await, 0, "a millisecond early");
        s.shows(&expected).await;

        s.advance(MS);
        assert_eq!(prune().await, 1);
        expected.removed(gone);
        s.shows(&expected).await;
    }
}

pub async fn retention_counts_from_when_a_job_became_final(s: &Subject) {
    let job = s.job();
    s.add(&job).await;
    s.advance(HOUR);
    let run = s.take().await;
    s.advance(HOUR);
    s.apply(done(&run)).await;
    s.advance(SECOND - MS);
    assert_eq!(s.prune(SECOND, 10).await, Pruned::default());

    s.advance(MS);
    assert_eq!(s.prune(SECOND, 10).await.jobs, 1);
}

pub async fn a_prune_removes_the_oldest_up_to_its_limit(s: &Subject) {
    let mut jobs = Vec::new();
    for settlement in [done, dead, called_off, done] {
        let job = s.job();
        s.settled(&job, settlement).await;
        s.advance(SECOND);
        jobs.push(job);
    }
    let mut expected = s.picture().await;
    assert_eq!(s.prune(MS, 0).await, Pruned::default());
    s.shows(&expected).await;

    assert_eq!(
        s.prune(MS, 3).await,
        Pruned {
            jobs: 3,
            ..Pruned::default()
        }
    );

    for job in &jobs[..3] {
        expected.removed(job.id);
    }
    s.shows(&expected).await;
    assert_eq!(s.prune(MS, 3).await.jobs, 1);
    assert_eq!(s.prune(MS, 3).await.jobs, 0);
}

pub async fn a_pruned_job_takes_its_history_along(s: &Subject) {
    let run = s.settled(&s.job(), done).await;
    s.advance(SECOND);

    s.prune(MS, 10).await;

    assert_eq!(s.store().job(run.id).await.expect("job answers"), None);
    assert_eq!(s.attempts(run.id).await, []);
}

pub async fn a_prune_never_touches_a_live_job(s: &Subject) {
    s.settled(&s.job(), |run| retry(run, HOUR)).await;
    let keyed = NewJob {
        idempotency: once("i", REQUEST),
        dedupe: rerun("k"),
        ..s.job()
    };
    s.running(&keyed).await;
    s.insert(&[
        NewJob {
            dedupe: rerun("k"),
            ..s.job()
        },
        s.job(),
    ])
    .await;
    let expected = s.picture().await;
    s.advance(HOUR * 10_000);

    assert_eq!(s.prune(Duration::ZERO, 100).await, Pruned::default());

    s.shows(&expected).await;
}

pub async fn a_prune_in_an_empty_store_finds_nothing(s: &Subject) {
    assert_eq!(s.prune(Duration::ZERO, usize::MAX).await, Pruned::default());
    s.shows(&Picture::default()).await;
}

/// Ends `count` jobs under a request's key each, and `count` under a window of an hour each.
async fn ended_with_keys(s: &Subject, count: usize) {
    let window = DedupeUntil::Window(HOUR);
    for _ in 0..count {
        let job = s.job();
        let key = job.id.to_string();
        let requested = NewJob {
            idempotency: once(&key, REQUEST),
            ..job
        };
        let windowed = NewJob {
            dedupe: held(&key, window, OnDuplicate::Keep),
            ..s.job()
        };
        s.settled(&requested, done).await;
        s.settled(&windowed, done).await;
    }
}

pub async fn a_prune_counts_each_kind_for_itself(s: &Subject) {
    ended_with_keys(s, 2).await;
    s.settled(&s.job(), dead).await;
    s.advance(HOUR - MS);
    assert_eq!(
        s.prune(HOUR, 10).await,
        Pruned::default(),
        "a millisecond early"
    );
    s.advance(MS);
    let keys = Pruned {
        jobs: 0,
        idempotency_keys: 2,
        dedupe_windows: 2,
    };
    assert_eq!(s.prune(HOUR * 2, 10).await, keys);
    assert_eq!(s.prune(HOUR * 2, 10).await, Pruned::default());

    let jobs = Pruned {
        jobs: 5,
        ..Pruned::default()
    };
    assert_eq!(s.prune(HOUR, 10).await, jobs);
}

pub async fn a_prune_keeps_its_limit_for_each_kind(s: &Subject) {
    ended_with_keys(s, 5).await;
    s.advance(HOUR);

    let removed = |jobs, idempotency_keys, dedupe_windows| Pruned {
        jobs,
        idempotency_keys,
        dedupe_windows,
    };
    assert_eq!(s.prune(MS, 0).await, removed(0, 0, 0));
    assert_eq!(s.prune(MS, 4).await, removed(4, 4, 4));
    assert_eq!(s.prune(MS, 4).await, removed(4, 1, 1));
    assert_eq!(s.prune(MS, 4).await, removed(2, 0, 0));
    assert_eq!(s.prune(MS, 4).await, removed(0, 0, 0));
}
