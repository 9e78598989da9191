//! Who waits for whom: what a row's lock holds up, what it does not, and that nobody waits in a
//! circle.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::poll;
use sqlx::Connection;

use super::world::{Ground, World, done, ids, job, jobs, keyed, request, run};
use crate::error::{EnqueueError, StoreErrorKind};
use crate::job::{Change, Claimed, JobState, NewJob, OutcomeKind, Settled, Settlement};
use crate::seam::Seam;
use crate::store::postgres::instant::At;
use crate::store::postgres::settle::settle;
use crate::store::postgres::statements::Statements;
use crate::store::{Admin, Extended, Inserted, Store};

/// Short, so that a test that runs into it is over soon.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

pub(crate) async fn short_tempered() -> Option<World> {
    World::with(|options| options.lock_timeout(LOCK_TIMEOUT)).await
}

/// A settlement that gives an expired job back.
fn rescue(claimed: &Claimed) -> Settlement {
    Settlement {
        change: Change::Queued {
            delay: Duration::ZERO,
        },
        outcome: OutcomeKind::Lost,
        crashes: 1,
        only_if_expired: true,
        ..done(claimed)
    }
}

/// O-031: an equal key in another open transaction is waited for, and the answer is true whatever
/// becomes of that.
#[tokio::test]
async fn an_equal_key_in_an_open_transaction_is_waited_for() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut monitor = world.connection().await;
    for is_kept in [true, false] {
        let key = format!("kept:{is_kept}");
        let (first, second, beside) = (keyed(&key), keyed(&key), keyed(&key));
        let (mut one, mut two) = (world.connection().await, world.connection().await);
        let mut holder = one.begin().await.expect("a transaction");
        let mut waiter = two.begin().await.expect("a transaction");
        let held = world
            .store
            .insert_in(&mut holder, std::slice::from_ref(&first));
        held.await.expect("the first");

        let mut waits = Box::pin(
            world
                .store
                .insert_in(&mut waiter, std::slice::from_ref(&second)),
        );
        let also_waits = world.store.insert(std::slice::from_ref(&beside));
        let mut also_waits = Box::pin(also_waits);
        let both = async {
            let ends = async {
                world.until_somebody_waits(&mut monitor).await;
                match is_kept {
                    true => holder.commit().await.expect("committed"),
                    false => holder.rollback().await.expect("rolled back"),
                }
            };
            join(&mut waits, ends).await.0
        };
        let answer = both.await.expect("answered").remove(0);
        drop(waits);
        match is_kept {
            true => assert!(
                matches!(answer, Inserted::Duplicate { existing, .. } if existing == first.id)
            ),
            false => assert_eq!(answer, Inserted::New { id: second.id }),
        }
        let (committed, also) = join(waiter.commit(), &mut also_waits).await;
        committed.expect("committed");
        let stored = if is_kept { first.id } else { second.id };
        let also = also.expect("answered").remove(0);
        assert!(
            matches!(also, Inserted::Duplicate { existing, .. } if existing == stored),
            "{also:?}"
        );
    }
    assert_eq!(world.store.counts().await.expect("counted").queued, 2);
    world.end().await;
}

/// O-075, O-076: bulks take their keys in one order, so none waits for one that waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bulks_with_the_same_keys_in_opposite_orders_never_wait_in_a_circle() {
    // A database of its own, whose deadlocks are those of this test.
    let Some(ground) = Ground::with_settings(&[]).await else {
        return;
    };
    let world = World::on(ground, |options| options).await;
    let world = Arc::new(world);
    let before = deadlocks(&world).await;
    let rounds = |is_turned: bool| {
        let world = Arc::clone(&world);
        let seam = crate::seam::SystemSeam::new();
        let (send, ended) = tokio::sync::oneshot::channel();
        let task = async move {
            let mut conn = world.connection().await;
            for round in 0..50 {
                let mut bulk: Vec<NewJob> =
                    (0..20).map(|n| keyed(&format!("{round}:{n}"))).collect();
                if is_turned {
                    bulk.reverse();
                }
                let answers = if round % 2 == 0 {
                    world.store.insert(&bulk).await.expect("no deadlock")
                } else {
                    let mut tx = conn.begin().await.expect("a transaction");
                    let answers = world.store.insert_in(&mut tx, &bulk).await;
                    let answers = answers.expect("no deadlock");
                    tx.commit().await.expect("committed");
                    answers
                };
                assert_eq!(answers.len(), 20);
            }
            let _ = send.send(());
        };
        drop(crate::seam::Seam::spawn(&seam, Box::pin(task)));
        ended
    };
    for ended in join_all([rounds(false), rounds(true), rounds(false), rounds(true)]).await {
        ended.expect("it came to its end");
    }
    assert_eq!(world.store.counts().await.expect("counted").queued, 1_000);
    assert_eq!(deadlocks(&world).await, before, "Postgres had to end none");
    let world = Arc::into_inner(world).expect("all are done");
    world.end().await;
}

/// Bulks of more than one statement hold keys of their first while they wait in their second.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deadlock_of_large_bulks_reaches_no_caller() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut bulk: Vec<NewJob> = (0..1_500).map(|n| keyed(&format!("{n}"))).collect();
    let turned: Vec<NewJob> = (0..1_500).rev().map(|n| keyed(&format!("{n}"))).collect();
    let (mut one, mut two) = (world.connection().await, world.connection().await);
    let inside = async |conn: &mut sqlx::PgConnection, bulk: &[NewJob]| {
        let mut tx = conn.begin().await.expect("a transaction");
        let answers = world.store.insert_in(&mut tx, bulk).await?;
        tx.commit().await.expect("committed");
        Ok::<_, EnqueueError>(answers)
    };
    for _ in 0..3 {
        let (one, two) = join(inside(&mut one, &bulk), inside(&mut two, &turned)).await;
        for answers in [one, two] {
            assert_eq!(answers.expect("no deadlock").len(), 1_500);
        }
        let (own, turned_own) = join(world.store.insert(&bulk), world.store.insert(&turned)).await;
        own.and(turned_own).expect("no deadlock");
        world.run("truncate {q}.jobs").await;
        bulk.rotate_left(750);
    }
    world.end().await;
}

async fn deadlocks(world: &World) -> i64 {
    let mut conn = world.connection().await;
    let sql = "select deadlocks from pg_stat_database where datname = current_database()";
    let count = sqlx::query_scalar(sql).fetch_one(&mut conn).await;
    count.expect("it answers")
}

#[tokio::test]
async fn a_key_that_is_held_too_long_is_an_error_that_says_so() {
    let Some(world) = short_tempered().await else {
        return;
    };
    let (mut one, mut two) = (world.connection().await, world.connection().await);
    let mut holder = one.begin().await.expect("a transaction");
    let held = [keyed("k")];
    world
        .store
        .insert_in(&mut holder, &held)
        .await
        .expect("the first");

    let error = world
        .store
        .insert(&[keyed("k")])
        .await
        .expect_err("it waits too long");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("lock timeout"), "{error}");

    // The same for an id, which one statement by itself stores.
    let same_id = NewJob {
        id: held[0].id,
        ..job()
    };
    let error = world.store.insert(&[same_id]).await;
    let error = error.expect_err("it waits too long");
    assert!(error.to_string().contains("lock timeout"), "{error}");

    // In a transaction of the caller's it is the caller's bound, and the rest is not lost.
    let mut tx = two.begin().await.expect("a transaction");
    run(&mut tx, "set local lock_timeout = '100ms'").await;
    let kept = job();
    world
        .store
        .insert_in(&mut tx, std::slice::from_ref(&kept))
        .await
        .expect("stored");
    let refused = world.store.insert_in(&mut tx, &[keyed("k")]).await;
    let EnqueueError::Store(error) = refused.expect_err("it waits too long") else {
        panic!("the store says so");
    };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("lock timeout"), "{error}");
    tx.commit().await.expect("committed");

    holder.commit().await.expect("committed");
    let counts = world.store.counts().await.expect("counted");
    assert_eq!(
        counts.queued, 2,
        "one of each, and nothing of those that waited"
    );
    assert!(
        world
            .store
            .job(kept.id)
            .await
            .expect("it answers")
            .is_some()
    );
    world.end().await;
}

/// O-011: one row that is held does not keep the other leases from being renewed.
#[tokio::test]
async fn a_heartbeat_a_rescue_and_a_claim_never_wait() {
    let Some(world) = World::new().await else {
        return;
    };
    world.store.insert(&jobs(4)).await.expect("stored");
    let claimed = world.claim(2).await;
    let leases: Vec<_> = claimed.iter().map(Claimed::lease).collect();
    let mut heartbeat = world.store.heartbeat().await.expect("connected");
    let mut other = world.connection().await;
    let mut tx = other.begin().await.expect("a transaction");
    let next = "select id from {q}.jobs where status = 'queued' order by id limit 1";
    let lock = format!(
        "select 1 from {{q}}.jobs where id = '{}' or id = ({next}) for update",
        claimed[0].id
    );
    run(&mut tx, &world.sql(&lock)).await;

    let answers = heartbeat.extend(&leases, Duration::from_mins(1)).await;
    assert_eq!(answers.expect("at once"), [Extended::Held, Extended::Kept]);
    let taken = world.claim(2).await;
    assert_eq!(taken.len(), 1, "the one that is free");
    world.hand.advance(Duration::from_mins(2));
    let expired = world.store.expired(9).await.expect("at once");
    assert_eq!(expired.len(), 2, "without the one that is held");
    let rescues: Vec<_> = claimed.iter().map(rescue).collect();
    // Below the store, which would go round a row that it has waited for.
    let statements = Statements::new(&world.schema, false);
    let now = Some(At(world.hand.now()));
    let mut impatient = world.connection().await;
    let mut own = impatient.begin().await.expect("a transaction");
    run(&mut own, "set local lock_timeout = '1ms'").await;
    let (answers, _) = settle(&mut own, &statements, now, &rescues)
        .await
        .expect("nothing is waited for");
    own.commit().await.expect("committed");
    assert_eq!(
        answers,
        [Settled::Stale, Settled::Applied(JobState::Queued)]
    );

    tx.rollback().await.expect("rolled back");
    let answers = world.store.settle(&rescues[..1]).await.expect("at once");
    assert_eq!(answers, [Settled::Applied(JobState::Queued)]);
    let rest = world.store.claim(&request(9)).await.expect("claimed");
    assert_eq!(rest.len(), 3, "{:?}", ids(&rest));
    world.end().await;
}

/// What is dropped while it waits holds no connection of the pool, and stores nothing.
#[tokio::test]
async fn an_enqueue_that_is_given_up_while_it_waits_stores_nothing() {
    let Some(world) = World::new().await else {
        return;
    };
    let (mut one, mut monitor) = (world.connection().await, world.connection().await);
    let mut holder = one.begin().await.expect("a transaction");
    let held = [keyed("k")];
    world
        .store
        .insert_in(&mut holder, &held)
        .await
        .expect("the first");
    for _ in 0..10 {
        let second = [keyed("k")];
        let mut waits = Box::pin(world.store.insert(&second));
        assert!(poll!(&mut waits).is_pending());
        let gives_up = world.until_somebody_waits(&mut monitor);
        tokio::select! {
            answer = &mut waits => panic!("{answer:?}"),
            () = gives_up => {}
        }
    }
    holder.rollback().await.expect("rolled back");
    // The pool has five connections: all of them are there again.
    let answers = join_all((0..10).map(|_| world.store.counts())).await;
    for counts in answers {
        assert_eq!(counts.expect("counted").total(), 0);
    }
    world.end().await;
}
