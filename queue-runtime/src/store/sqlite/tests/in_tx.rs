//! Enqueuing inside a transaction of the caller's.

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use super::world::World;
use crate::error::EnqueueError;
use crate::job::{Dedupe, DedupeUntil, JobState, OnDuplicate};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{Admin, Inserted, Store};

#[tokio::test]
async fn a_job_is_visible_with_the_commit_and_gone_with_the_rollback() {
    let world = World::new().await;
    let (kept, lost) = (world.job(), world.job());

    let mut tx = world.store.begin().await.unwrap();
    let said = world
        .store
        .insert_in(&mut tx, std::slice::from_ref(&kept))
        .await;
    assert_eq!(said.unwrap(), [Inserted::New { id: kept.id }]);
    assert_eq!(world.store.job(kept.id).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert!(world.store.job(kept.id).await.unwrap().is_some());

    let mut tx = world.store.begin().await.unwrap();
    world
        .store
        .insert_in(&mut tx, std::slice::from_ref(&lost))
        .await
        .unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(world.store.job(lost.id).await.unwrap(), None);
    assert_eq!(world.claim(9).await.len(), 1);
}

#[tokio::test]
async fn keys_mean_the_same_inside_a_transaction() {
    let world = World::new().await;
    let mut job = world.job();
    job.dedupe = Some(Dedupe {
        key: "user:42".to_owned(),
        until: DedupeUntil::Finished,
        on_duplicate: OnDuplicate::Keep,
    });
    world
        .store
        .insert(std::slice::from_ref(&job))
        .await
        .unwrap();
    let mut again = world.job();
    again.dedupe.clone_from(&job.dedupe);
    let mut tx = world.store.begin().await.unwrap();
    let said = world.store.insert_in(&mut tx, &[again]).await.unwrap();
    assert_eq!(
        said,
        [Inserted::Duplicate {
            existing: job.id,
            state: JobState::Queued,
            payload_differs: false
        }]
    );
}

#[tokio::test]
async fn a_bare_connection_stores_at_once() {
    let world = World::new().await;
    let job = world.job();
    let mut conn = world.connection().await;
    world
        .store
        .insert_in(&mut conn, std::slice::from_ref(&job))
        .await
        .unwrap();
    assert!(world.store.job(job.id).await.unwrap().is_some());
}

#[tokio::test]
async fn another_database_is_refused_and_nothing_is_written() {
    let world = World::new().await;
    let path = world.dir.path().join("app.db");
    let options = SqliteOptions::new(path.to_str().unwrap()).unwrap();
    let mut conn = options.connect_options().connect().await.unwrap();
    let error = world
        .store
        .insert_in(&mut conn, &[world.job()])
        .await
        .unwrap_err();
    assert!(
        matches!(&error, EnqueueError::OtherDatabase { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("queue_meta"), "{error}");

    let other = SqliteStore::open(options).await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    let error = world
        .store
        .insert_in(&mut tx, &[world.job()])
        .await
        .unwrap_err();
    assert!(
        matches!(&error, EnqueueError::OtherDatabase { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("another store id"), "{error}");
    tx.commit().await.unwrap();
    for store in [&*world.store, &other] {
        assert_eq!(store.counts().await.unwrap().total(), 0);
    }
}

#[tokio::test]
async fn a_transaction_that_can_no_longer_write_is_told_how_to_begin() {
    let world = World::new().await;
    let mut conn = world.connection().await;
    conn.execute("begin").await.unwrap();
    conn.execute("select count(*) from queue_jobs")
        .await
        .unwrap();
    world.store.insert(&[world.job()]).await.unwrap();
    let error = world
        .store
        .insert_in(&mut conn, &[world.job()])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("plain BEGIN"), "{error}");
    assert!(error.to_string().contains("queue.begin()"), "{error}");
    conn.execute("rollback").await.unwrap();
    assert_eq!(world.store.counts().await.unwrap().total(), 1);
}

#[tokio::test]
async fn a_failed_batch_leaves_nothing_of_itself_in_the_transaction() {
    let world = World::new().await;
    let (good, bad) = (world.job(), world.job());
    let sql = format!(
        "create trigger poison before insert on queue_jobs when new.id = '{}' \
         begin select raise(abort, 'poisoned'); end",
        bad.id
    );
    let mut tx = world.store.begin().await.unwrap();
    tx.execute(AssertSqlSafe(sql)).await.unwrap();
    let kept = world.job();
    world
        .store
        .insert_in(&mut tx, std::slice::from_ref(&kept))
        .await
        .unwrap();
    world
        .store
        .insert_in(&mut tx, &[good.clone(), bad])
        .await
        .unwrap_err();
    tx.commit().await.unwrap();
    assert!(world.store.job(kept.id).await.unwrap().is_some());
    assert_eq!(world.store.job(good.id).await.unwrap(), None);
}
