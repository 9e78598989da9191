//! The registry of versions: written by inserts, and only rising.

use queue_runtime::job::{CacheKey, NewJob};
use queue_runtime::store::Inserted;

use super::jobs::{HOUR, MS, REQUEST, SECOND, dead, done, keep, once};
use super::subject::Subject;

fn refresh(s: &Subject, key: &str, version: u64) -> NewJob {
    NewJob {
        cache: Some(CacheKey {
            key: key.to_owned(),
            version,
        }),
        ..s.job()
    }
}

pub async fn an_unknown_cache_key_has_no_version(s: &Subject) {
    s.add(&s.job()).await;
    assert_eq!(s.newest_version("user:42").await, None);
}

pub async fn a_version_rises_and_never_falls(s: &Subject) {
    for (version, newest) in [(5, 5), (7, 7), (6, 7), (7, 7), (0, 7), (8, 8)] {
        s.add(&refresh(s, "user:42", version)).await;
        assert_eq!(
            s.newest_version("user:42").await,
            Some(newest),
            "after {version}"
        );
    }
}

pub async fn version_zero_is_a_version(s: &Subject) {
    s.add(&refresh(s, "user:42", 0)).await;
    assert_eq!(s.newest_version("user:42").await, Some(0));
}

pub async fn each_cache_key_has_a_version_of_its_own(s: &Subject) {
    let keys = ["user:42", "user:43", "User:42", "user:42 ", ""];
    for (key, version) in keys.into_iter().zip(1..) {
        s.add(&refresh(s, key, version)).await;
    }
    for (key, version) in keys.into_iter().zip(1..) {
        assert_eq!(s.newest_version(key).await, Some(version), "{key:?}");
    }
}

pub async fn a_batch_leaves_the_highest_version(s: &Subject) {
    s.insert(&[refresh(s, "k", 2), refresh(s, "k", 9), refresh(s, "k", 3)])
        .await;
    assert_eq!(s.newest_version("k").await, Some(9));
}

pub async fn a_duplicate_raises_the_version(s: &Subject) {
    let first = NewJob {
        dedupe: keep("d"),
        ..refresh(s, "k", 1)
    };
    s.add(&first).await;

    let newcomer = NewJob {
        dedupe: keep("d"),
        ..refresh(s, "k", 2)
    };
    assert!(matches!(
        s.offer(&newcomer).await,
        Inserted::Duplicate { .. }
    ));

    assert_eq!(s.newest_version("k").await, Some(2));
    assert_eq!(
        s.record(first.id).await.cache,
        first.cache,
        "the kept job is for its own version"
    );
}

pub async fn a_repeated_request_raises_the_version(s: &Subject) {
    s.add(&NewJob {
        idempotency: once("i", REQUEST),
        ..refresh(s, "k", 1)
    })
    .await;

    let again = NewJob {
        idempotency: once("i", REQUEST),
        ..refresh(s, "k", 2)
    };
    assert!(matches!(s.offer(&again).await, Inserted::Duplicate { .. }));

    assert_eq!(s.newest_version("k").await, Some(2));
}

pub async fn a_repeated_id_does_not_raise_a_version(s: &Subject) {
    let plain = refresh(s, "k", 1);
    let keyed = NewJob {
        dedupe: keep("d"),
        idempotency: once("i", REQUEST),
        ..refresh(s, "k", 1)
    };
    let ended = refresh(s, "k", 1);
    s.settled(&ended, done).await;
    s.insert(&[plain.clone(), keyed.clone()]).await;

    let newer = |job: &NewJob| NewJob {
        cache: refresh(s, "k", 7).cache,
        ..job.clone()
    };
    for job in [plain, keyed, ended] {
        let again = newer(&job);
        assert_eq!(s.offer(&again).await, Inserted::New { id: job.id });
        assert_eq!(s.newest_version("k").await, Some(1), "it is stored already");
    }
    let twice = refresh(s, "k", 2);
    s.insert(&[twice.clone(), newer(&twice)]).await;
    assert_eq!(s.newest_version("k").await, Some(2), "in one batch");
}

pub async fn a_version_outlives_its_job(s: &Subject) {
    s.settled(&refresh(s, "k", 4), done).await;
    s.settled(&refresh(s, "k", 3), dead).await;
    s.advance(HOUR);
    assert_eq!(s.prune(MS, 10).await.jobs, 2);
    s.advance(SECOND);

    assert_eq!(s.newest_version("k").await, Some(4));
}

pub async fn a_job_is_handed_out_with_the_version_it_was_made_for(s: &Subject) {
    s.add(&refresh(s, "k", 3)).await;
    s.add(&refresh(s, "k", 8)).await;

    let versions: Vec<_> = s
        .claim_all()
        .await
        .into_iter()
        .map(|run| run.cache.map(|cache| cache.version))
        .collect();

    assert_eq!(versions, [Some(3), Some(8)]);
}
