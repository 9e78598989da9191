//! Enqueuing inside a transaction of the caller's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::world::{Ground, Hand, World, job, jobs, keyed, run};
use crate::error::{EnqueueError, StoreErrorKind};
use crate::job::{JobState, NewJob};
use crate::seam::Seam;
use crate::store::postgres::PostgresStore;
use crate::store::{Admin, Inserted, Store};

async fn insert_in(world: &World, conn: &mut PgConnection, new: &NewJob) -> Inserted {
    let answers = world.store.insert_in(conn, std::slice::from_ref(new)).await;
    answers.expect("it is the queue's database").remove(0)
}

/// What inserting is refused with.
async fn refusal(world: &World, conn: &mut PgConnection, new: &NewJob) -> EnqueueError {
    let answers = world.store.insert_in(conn, std::slice::from_ref(new)).await;
    answers.expect_err("it is refused")
}

async fn is_stored(world: &World, new: &NewJob) -> bool {
    let found = world.store.job(new.id).await;
    found.expect("it answers").is_some()
}

#[tokio::test]
async fn a_job_is_visible_with_the_commit_and_gone_with_the_rollback() {
    let Some(world) = World::new().await else {
        return;
    };
    world.run("create table {q}.orders (id int)").await;
    let (kept, lost) = (job(), job());
    let mut conn = world.connection().await;
    for (new, is_kept) in [(&kept, true), (&lost, false)] {
        let mut tx = conn.begin().await.expect("a transaction");
        run(&mut tx, &world.sql("insert into {q}.orders values (1)")).await;
        assert_eq!(
            insert_in(&world, &mut tx, new).await,
            Inserted::New { id: new.id }
        );
        assert!(!is_stored(&world, new).await, "nobody sees it yet");
        assert_eq!(world.claim(9).await, []);
        match is_kept {
            true => tx.commit().await.expect("committed"),
            false => tx.rollback().await.expect("rolled back"),
        }
        assert_eq!(is_stored(&world, new).await, is_kept);
        world.claim(9).await;
    }
    let orders = world.sql("select count(*) from {q}.orders");
    let orders: i64 = sqlx::query_scalar(AssertSqlSafe(orders))
        .fetch_one(&mut conn)
        .await
        .expect("counted");
    assert_eq!(orders, 1);
    world.end().await;
}

#[tokio::test]
async fn keys_mean_the_same_inside_a_transaction() {
    let Some(world) = World::new().await else {
        return;
    };
    let first = keyed("user:42");
    world.add(&first).await;
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let again = insert_in(&world, &mut tx, &keyed("user:42")).await;
    assert_eq!(
        again,
        Inserted::Duplicate {
            existing: first.id,
            state: JobState::Queued,
            payload_differs: false
        }
    );
    tx.commit().await.expect("committed");
    world.end().await;
}

#[tokio::test]
async fn a_bare_connection_stores_at_once_and_is_left_without_a_transaction() {
    let Some(world) = World::new().await else {
        return;
    };
    let options = PgPoolOptions::new().max_connections(1);
    let pool = options.connect_lazy_with(world.ground.connect.clone());
    let mut conn = pool.acquire().await.expect("the server takes one more");
    let new = job();
    insert_in(&world, &mut conn, &new).await;
    assert!(is_stored(&world, &new).await);
    let bad = NewJob {
        payload: "\0".to_owned(),
        ..job()
    };
    refusal(&world, &mut conn, &bad).await;
    run(&mut conn, "vacuum pg_catalog.pg_class").await;
    drop(conn);
    pool.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_begin_that_the_caller_wrote_is_left_open() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut conn = world.connection().await;
    let new = job();
    for (end, is_kept) in [("rollback", false), ("commit", true)] {
        run(&mut conn, "begin").await;
        insert_in(&world, &mut conn, &new).await;
        assert!(!is_stored(&world, &new).await);
        run(&mut conn, end).await;
        assert_eq!(is_stored(&world, &new).await, is_kept, "{end}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_failed_batch_leaves_nothing_of_itself_and_the_transaction_usable() {
    let Some(world) = World::new().await else {
        return;
    };
    let (kept, good, after) = (job(), job(), job());
    let bad = NewJob {
        payload: "\0".to_owned(),
        ..job()
    };
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    insert_in(&world, &mut tx, &kept).await;
    let refused = world.store.insert_in(&mut tx, &[good.clone(), bad]).await;
    refused.expect_err("Postgres keeps no such text");
    insert_in(&world, &mut tx, &after).await;
    tx.commit().await.expect("committed");
    assert!(is_stored(&world, &kept).await && is_stored(&world, &after).await);
    assert!(!is_stored(&world, &good).await);
    world.end().await;
}

#[tokio::test]
async fn another_database_is_refused_and_the_transaction_there_goes_on() {
    let (Some(world), Some(elsewhere)) = (World::new().await, Ground::with_settings(&[]).await)
    else {
        return;
    };
    let mut conn = elsewhere.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    run(&mut tx, "create table orders (id int)").await;
    let error = refusal(&world, &mut tx, &job()).await;
    assert!(
        matches!(error, EnqueueError::OtherDatabase { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("no queue in the schema"),
        "{error}"
    );
    run(&mut tx, "insert into orders values (1)").await;
    tx.commit().await.expect("the order is kept");

    // The same schema in another database, and another schema in the same database.
    let same_name = elsewhere.options(&world.schema).migrate(true);
    let same_name = PostgresStore::open(same_name).await.expect("made");
    let error = refusal(&world, &mut conn, &job()).await;
    assert!(
        matches!(error, EnqueueError::OtherDatabase { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("another store id"), "{error}");
    let other = World::new().await.expect("there is a server");
    let mut here = world.connection().await;
    insert_in(&other, &mut here, &job()).await;

    for (store, total) in [(&world.store, 0), (&same_name, 0), (&other.store, 1)] {
        assert_eq!(store.counts().await.expect("counted").total(), total);
    }
    same_name.close().await;
    other.end().await;
    world.end().await;
    elsewhere.end().await;
}

#[tokio::test]
async fn a_transaction_that_has_failed_is_said_to_have() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let failed = sqlx::query("select 1 / 0").execute(&mut *tx).await;
    failed.expect_err("no number");
    let EnqueueError::Store(error) = refusal(&world, &mut tx, &job()).await else {
        panic!("the store says so");
    };
    assert_eq!(error.kind(), StoreErrorKind::InvalidInput);
    assert!(
        error.to_string().contains("failed before. Roll it back"),
        "{error}"
    );
    tx.rollback().await.expect("rolled back");
    insert_in(&world, &mut conn, &job()).await;
    world.end().await;
}

/// A transaction of a stricter kind sees the keys as they were when it began.
#[tokio::test]
async fn a_key_that_a_strict_transaction_cannot_see_is_answered_with_what_to_do() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut conn = world.connection().await;
    for level in ["repeatable read", "serializable"] {
        run(&mut conn, &format!("begin isolation level {level}")).await;
        let plain = job();
        insert_in(&world, &mut conn, &plain).await;
        world.add(&keyed(level)).await;
        let EnqueueError::Store(error) = refusal(&world, &mut conn, &keyed(level)).await else {
            panic!("the store says so");
        };
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("Try again"), "{error}");
        run(&mut conn, "commit").await;
        assert!(
            is_stored(&world, &plain).await,
            "the rest is the caller's to keep"
        );

        run(&mut conn, &format!("begin isolation level {level}")).await;
        let again = insert_in(&world, &mut conn, &keyed(level)).await;
        assert!(
            matches!(again, Inserted::Duplicate { .. }),
            "begun anew it sees it"
        );
        run(&mut conn, "commit").await;
    }
    world.end().await;
}

/// Such a transaction loses at each try, and whoever meets others at a key may meet them again.
#[tokio::test]
async fn a_lost_race_is_tried_again_after_a_pause_and_not_for_ever() {
    let seam = Hand::new();
    let on_it = Arc::clone(&seam) as Arc<dyn Seam>;
    // A notification on its way would sleep as well.
    let Some(world) = World::with(|options| options.seam(on_it).notify(false)).await else {
        return;
    };
    let mut conn = world.connection().await;
    run(&mut conn, "begin isolation level repeatable read").await;
    insert_in(&world, &mut conn, &job()).await;
    world.add(&keyed("k")).await;

    let before = seam.sleeps.load(Ordering::SeqCst);
    refusal(&world, &mut conn, &keyed("k")).await;
    let pauses = seam.sleeps.load(Ordering::SeqCst) - before;

    assert_eq!(pauses, 4, "five tries");
    drop(conn);
    world.end().await;
}

#[tokio::test]
async fn a_read_only_transaction_is_told_so() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut conn = world.connection().await;
    run(&mut conn, "begin read only").await;
    let refused = world.store.insert_in(&mut conn, &jobs(2)).await;
    let error = refused.expect_err("nothing may be written");
    assert!(error.to_string().contains("read-only"), "{error}");
    run(&mut conn, "commit").await;
    assert_eq!(world.store.counts().await.expect("counted").total(), 0);
    world.end().await;
}
