//! Producers that insert at once share commits, and nothing else.

use std::pin::Pin;

use futures_util::future::{join, join_all};
use futures_util::poll;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::runtime::{Builder, Runtime};

use super::waits::short_tempered;
use super::world::{World, done, ids, job, jobs, run};
use crate::error::{StoreError, StoreErrorKind};
use crate::job::NewJob;
use crate::store::{Admin, Inserted, Store};

type Answer = Result<Vec<Inserted>, StoreError>;

/// Keeps everybody from inserting until it is told to end.
async fn shut(world: &World) -> PgConnection {
    let mut conn = world.connection().await;
    let lock = world.sql("begin; lock table {q}.jobs in access exclusive mode");
    run(&mut conn, &lock).await;
    conn
}

/// Inserts one job.
fn insert<'a>(world: &'a World, new: &'a NewJob) -> Pin<Box<dyn Future<Output = Answer> + 'a>> {
    Box::pin(world.store.insert(std::slice::from_ref(new)))
}

/// Inserts every batch by a producer of its own, all of them before the first is stored.
async fn at_once(world: &World, batches: &[Vec<NewJob>]) -> Vec<Answer> {
    let (mut door, mut monitor) = (shut(world).await, world.connection().await);
    let producers = join_all(batches.iter().map(|batch| world.store.insert(batch)));
    let open = async {
        world.until_somebody_waits(&mut monitor).await;
        run(&mut door, "commit").await;
    };
    join(producers, open).await.0
}

/// Batches of one job.
fn singles(count: usize) -> Vec<Vec<NewJob>> {
    jobs(count).into_iter().map(|new| vec![new]).collect()
}

fn assert_new(answer: Answer, batch: &[NewJob]) {
    let new = |new: &NewJob| Inserted::New { id: new.id };
    let wanted: Vec<_> = batch.iter().map(new).collect();
    assert_eq!(answer.expect("stored"), wanted);
}

/// The number of jobs that each transaction has stored.
async fn commits(world: &World) -> Vec<i64> {
    let sql = world.sql("select count(*) from {q}.jobs group by xmin::text");
    let counted = sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_all(&mut world.connection().await)
        .await;
    counted.expect("it answers")
}

#[tokio::test]
async fn producers_at_once_do_not_pay_for_a_commit_each() {
    for behind_pooler in [false, true] {
        let Some(world) = World::with(|options| options.behind_pooler(behind_pooler)).await else {
            return;
        };
        let hints = world.store.wakes.here.hints();
        let batches = singles(50);
        for (answer, batch) in at_once(&world, &batches).await.into_iter().zip(&batches) {
            assert_new(answer, batch);
        }

        let commits = commits(&world).await;
        assert_eq!(commits.iter().sum::<i64>(), 50);
        assert!(commits.len() <= 4, "{commits:?}");
        let hints = world.store.wakes.here.hints() - hints;
        assert!((1..=4).contains(&hints), "{hints} hints");
        world.end().await;
    }
}

#[tokio::test]
async fn a_shared_statement_does_not_grow_beyond_its_bounds() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut batches: Vec<_> = (0..5).map(|_| jobs(400)).collect();
    let large = |new: &mut NewJob| new.payload = format!("\"{}\"", "x".repeat(400 << 10));
    let mut heavy = singles(5);
    heavy.iter_mut().flatten().for_each(large);
    batches.extend(heavy);
    for (answer, batch) in at_once(&world, &batches).await.into_iter().zip(&batches) {
        assert_new(answer, batch);
    }

    let sql = "select max(sum) from (
                 select sum(length(payload)) from {q}.jobs group by xmin::text
               ) of_commits";
    let most: i64 = sqlx::query_scalar(AssertSqlSafe(world.sql(sql)))
        .fetch_one(&mut world.connection().await)
        .await
        .expect("it answers");
    assert!(most <= 1 << 20, "{most} bytes in one statement");
    let commits = commits(&world).await;
    assert!(commits.iter().all(|jobs| *jobs <= 1_000), "{commits:?}");
    world.end().await;
}

#[tokio::test]
async fn jobs_that_postgres_refuses_fail_nobody_elses() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut batches = singles(20);
    batches[7][0].payload = "\"\0\"".to_owned();
    batches[13].push(NewJob {
        payload: "\"\0\"".to_owned(),
        ..job()
    });
    let answers = at_once(&world, &batches).await;
    for (place, (answer, batch)) in answers.into_iter().zip(&batches).enumerate() {
        if place == 7 || place == 13 {
            let error = answer.expect_err("Postgres keeps no NUL");
            assert_eq!(error.kind(), StoreErrorKind::InvalidInput, "{error}");
        } else {
            assert_new(answer, batch);
        }
    }
    assert_eq!(world.store.counts().await.expect("counted").queued, 18);
    world.end().await;
}

#[tokio::test]
async fn a_job_whose_id_an_open_transaction_holds_fails_nobody_elses() {
    let Some(world) = short_tempered().await else {
        return;
    };
    let batches = singles(4);
    let mut conn = world.connection().await;
    let mut holder = conn.begin().await.expect("a transaction");
    let held = world.store.insert_in(&mut holder, &batches[2]).await;
    held.expect("stored");

    let answers = join_all(batches.iter().map(|batch| world.store.insert(batch))).await;

    for (place, (answer, batch)) in answers.into_iter().zip(&batches).enumerate() {
        if place == 2 {
            let error = answer.expect_err("it is locked for too long");
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert!(error.to_string().contains("lock timeout"), "{error}");
        } else {
            assert_new(answer, batch);
        }
    }
    holder.rollback().await.expect("rolled back");
    world.end().await;
}

/// Each held id occupies whoever came upon it: a caller by itself, and both flushers.
#[tokio::test]
async fn producers_that_come_after_stuck_ones_are_not_left_waiting() {
    let Some(world) =
        World::with(|options| options.connections(9).expect("as many as there may be")).await
    else {
        return;
    };
    let held = jobs(3);
    let mut conn = world.connection().await;
    let mut holder = conn.begin().await.expect("a transaction");
    let stored = world.store.insert_in(&mut holder, &held).await;
    stored.expect("stored");
    let mut monitor = world.connection().await;
    let mut stuck: Vec<_> = held.iter().map(|new| insert(&world, new)).collect();
    let mut waits = 0;
    for producer in &mut stuck {
        assert!(poll!(producer.as_mut()).is_pending());
        waits += 1;
        let until = world.until_waiting(waits, &mut monitor);
        let mut until = std::pin::pin!(until);
        // Whoever is stuck has to be driven while it runs into the lock.
        tokio::select! {
            () = &mut until => {}
            _ = producer.as_mut() => panic!("its id is held"),
        }
    }

    // One by one, so that nobody comes later who would see that nobody is at work.
    for new in jobs(10) {
        assert_new(insert(&world, &new).await, std::slice::from_ref(&new));
    }

    for producer in &mut stuck {
        assert!(poll!(producer.as_mut()).is_pending());
    }
    holder.rollback().await.expect("rolled back");
    for (answer, new) in join_all(stuck).await.into_iter().zip(&held) {
        assert_new(answer, std::slice::from_ref(new));
    }
    world.end().await;
}

/// The first call waits for somebody else's id. Meanwhile its repeat is stored, runs and ends.
#[tokio::test]
async fn a_job_that_ended_while_its_first_enqueue_waited_is_not_stored_again() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut two = jobs(2);
    two.sort_by_key(|new| new.id);
    let (held, repeated) = (two.remove(0), two.remove(0));
    let mut conn = world.connection().await;
    let mut holder = conn.begin().await.expect("a transaction");
    let stored = world
        .store
        .insert_in(&mut holder, std::slice::from_ref(&held))
        .await;
    stored.expect("stored");
    let mut monitor = world.connection().await;
    let both = [held.clone(), repeated.clone()];
    let mut first = Box::pin(world.store.insert(&both));
    {
        let mut until = std::pin::pin!(world.until_somebody_waits(&mut monitor));
        tokio::select! {
            () = &mut until => {}
            _ = &mut first => panic!("an id is held"),
        }
    }
    assert_new(
        insert(&world, &repeated).await,
        std::slice::from_ref(&repeated),
    );
    let claimed = world.claim(9).await;
    assert_eq!(ids(&claimed), [repeated.id]);
    let settled = world.store.settle(&[done(&claimed[0])]).await;
    settled.expect("settled");

    holder.commit().await.expect("committed");

    assert_new(first.await, &both);
    let counts = world.store.counts().await.expect("counted");
    assert_eq!((counts.queued, counts.done), (1, 1));
    world.end().await;
}

#[tokio::test]
async fn a_job_that_is_offered_twice_at_once_is_not_stored_twice() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut batches = singles(4);
    batches[2] = batches[1].clone();
    batches[3] = [batches[1].clone(), batches[1].clone()].concat();
    for (answer, batch) in at_once(&world, &batches).await.into_iter().zip(&batches) {
        assert_new(answer, batch);
    }
    assert_eq!(world.store.counts().await.expect("counted").queued, 2);
    world.end().await;
}

#[tokio::test]
async fn a_lost_connection_is_an_error_that_passes_for_all_who_shared_it() {
    let Some(world) = World::new().await else {
        return;
    };
    let (door, mut monitor) = (shut(&world).await, world.connection().await);
    let batches = singles(10);
    let producers = join_all(batches.iter().map(|batch| world.store.insert(batch)));
    let end = async {
        // The producer that came first, and those who share a statement.
        world.until_waiting(2, &mut monitor).await;
        let end = world.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where wait_event_type = 'Lock' and query like '%{q}%'",
        );
        run(&mut monitor, &end).await;
    };
    for answer in join(producers, end).await.0 {
        let error = answer.expect_err("nobody knows whether it is stored");
        assert!(error.is_transient(), "{error}");
        assert_eq!(error.operation(), "insert");
    }
    drop(door);

    for (answer, batch) in at_once(&world, &batches).await.into_iter().zip(&batches) {
        assert_new(answer, batch);
    }
    world.end().await;
}

#[tokio::test]
async fn a_producer_that_goes_away_takes_nobody_along() {
    let Some(world) = World::new().await else {
        return;
    };
    let (mut door, mut monitor) = (shut(&world).await, world.connection().await);
    let [first, leader, other] = <[NewJob; 3]>::try_from(jobs(3)).expect("three");
    let hints = world.store.wakes.here.hints();
    let mut goes = [insert(&world, &first), insert(&world, &leader)];
    let mut stays = insert(&world, &other);
    for going in &mut goes {
        assert!(poll!(going).is_pending());
    }
    assert!(poll!(&mut stays).is_pending());
    // It is the flusher: nobody polls the first producer meanwhile.
    world.until_somebody_waits(&mut monitor).await;

    drop(goes);
    run(&mut door, "commit").await;

    assert_new(stays.await, &[other]);
    assert!(world.store.wakes.here.hints() > hints, "workers hear of it");
    world.end().await;
}

/// It is not polled any more, but it has not been dropped either.
#[tokio::test]
async fn a_producer_that_is_left_lying_holds_up_nobody() {
    let Some(world) = World::new().await else {
        return;
    };
    let new = jobs(12);
    let mut lying: Vec<_> = new[..4].iter().map(|new| insert(&world, new)).collect();
    for lies in &mut lying {
        assert!(poll!(lies).is_pending());
    }
    for new in &new[4..] {
        assert_new(insert(&world, new).await, std::slice::from_ref(new));
    }
    for (lies, new) in lying.into_iter().zip(&new) {
        assert_new(lies.await, std::slice::from_ref(new));
    }
    world.end().await;
}

/// A runtime that works only while a test waits in it.
fn idle_runtime() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("the system gives a runtime")
}

/// A runtime that works by itself.
fn busy_runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(1).enable_all().build();
    built.expect("the system gives a runtime")
}

/// Lets producers on one runtime count on flushers of another, which ends: before a flusher has
/// begun, or while it waits for the server.
fn check_runtime_that_ends(has_begun: bool) {
    let (lasting, ending) = (busy_runtime(), idle_runtime());
    let Some(world) = lasting.block_on(World::new()) else {
        return;
    };
    let new = jobs(5);
    let mut door = lasting.block_on(shut(&world));
    let start = |runtime: &Runtime, new| {
        let mut producer = insert(&world, new);
        runtime.block_on(async { assert!(poll!(&mut producer).is_pending()) });
        producer
    };
    let first = start(&lasting, &new[0]);
    let doomed = [start(&ending, &new[1]), start(&ending, &new[2])];
    let others = [start(&lasting, &new[3]), start(&lasting, &new[4])];
    if has_begun {
        ending.block_on(async {
            let mut monitor = world.connection().await;
            world.until_somebody_waits(&mut monitor).await;
        });
    }

    drop(doomed);
    drop(ending);
    lasting.block_on(run(&mut door, "commit"));

    lasting.block_on(async {
        assert_new(first.await, &new[..1]);
        for (other, new) in others.into_iter().zip(&new[3..]) {
            assert_new(other.await, std::slice::from_ref(new));
        }
        assert_new(insert(&world, &new[1]).await, &new[1..2]);
    });
    lasting.block_on(world.end());
}

#[test]
fn a_runtime_that_ends_before_its_flusher_began_strands_nobody_on_another() {
    check_runtime_that_ends(false);
}

#[test]
fn a_runtime_that_ends_while_its_flusher_waits_strands_nobody_on_another() {
    check_runtime_that_ends(true);
}

#[tokio::test]
async fn a_store_that_is_closed_leaves_nobody_waiting() {
    let Some(world) = World::new().await else {
        return;
    };
    let (mut door, mut monitor) = (shut(&world).await, world.connection().await);
    let batches = singles(20);
    let producers = join_all(batches.iter().map(|batch| world.store.insert(batch)));
    let close = async {
        world.until_somebody_waits(&mut monitor).await;
        let open = async { run(&mut door, "commit").await };
        join(world.store.close(), open).await;
    };
    for (answer, batch) in join(producers, close).await.0.into_iter().zip(&batches) {
        match answer {
            Err(error) if error.kind() == StoreErrorKind::Closed => {}
            answer => assert_new(answer, batch),
        }
    }

    let late = join_all(batches.iter().map(|batch| world.store.insert(batch))).await;
    for answer in late {
        let error = answer.expect_err("the store is closed");
        assert_eq!(error.kind(), StoreErrorKind::Closed);
    }
    world.end().await;
}
