//! A row that somebody else's transaction holds delays nothing but its own settlement. The lock
//! timeout is so long here that whatever waits for it runs into the statement timeout instead.

use std::time::Duration;

use sqlx::{Connection, PgConnection};

use super::world::{World, done, ids, job, jobs, keyed, request, run};
use crate::error::StoreErrorKind;
use crate::job::{
    Change, Claimed, Dedupe, Fingerprint, Idempotency, JobState, NewJob, OnDuplicate, OutcomeKind,
    Settled, Settlement,
};
use crate::store::{Admin, Store};

const APPLIED: Settled = Settled::Applied(JobState::Done);

async fn patient() -> Option<World> {
    World::with(|options| options.lock_timeout(Duration::from_hours(1))).await
}

/// A world in which so many jobs run, and a stranger's transaction.
async fn running(count: usize) -> Option<(World, Vec<Claimed>, PgConnection)> {
    let world = patient().await?;
    world.store.insert(&jobs(count)).await.expect("stored");
    let mut claimed = world.claim(count).await;
    claimed.sort_by_key(|claimed| claimed.id);
    let mut stranger = world.connection().await;
    run(&mut stranger, "begin").await;
    Some((world, claimed, stranger))
}

async fn lock(world: &World, stranger: &mut PgConnection, claimed: &Claimed) {
    let lock = "select 1 from {q}.jobs where id = '{id}' for update";
    let lock = world.sql(&lock.replace("{id}", &claimed.id.to_string()));
    run(stranger, &lock).await;
}

fn again(claimed: &Claimed) -> Settlement {
    Settlement {
        change: Change::Queued {
            delay: Duration::ZERO,
        },
        outcome: OutcomeKind::Retry,
        ..done(claimed)
    }
}

/// O-130: what is free is settled and answered, what is held is said to be held.
#[tokio::test]
async fn a_row_that_a_stranger_locks_does_not_hold_up_its_neighbours() {
    let Some((world, claimed, mut stranger)) = running(5).await else {
        return;
    };
    lock(&world, &mut stranger, &claimed[1]).await;
    lock(&world, &mut stranger, &claimed[2]).await;
    let mut batch: Vec<_> = claimed.iter().map(done).collect();
    batch[2] = again(&claimed[2]);
    batch[3] = again(&claimed[3]);

    let answers = world.store.settle(&batch).await.expect("settled");
    let back = Settled::Applied(JobState::Queued);
    assert_eq!(
        answers,
        [APPLIED, Settled::Held, Settled::Held, back, APPLIED]
    );
    let counts = world.store.counts().await.expect("counted");
    assert_eq!((counts.done, counts.processing, counts.queued), (2, 2, 1));

    run(&mut stranger, "rollback").await;
    let answers = world.store.settle(&batch[1..3]).await.expect("settled");
    assert_eq!(answers, [APPLIED, back]);
    world.end().await;
}

#[tokio::test]
async fn a_held_row_does_not_keep_its_exchange_from_claiming() {
    let Some((world, claimed, mut stranger)) = running(2).await else {
        return;
    };
    world.add(&job()).await;
    lock(&world, &mut stranger, &claimed[0]).await;
    let batch: Vec<_> = claimed.iter().map(done).collect();

    for expected in [[Settled::Held, APPLIED], [Settled::Held, Settled::Stale]] {
        let (answers, taken) = world
            .store
            .exchange(&batch, &request(1))
            .await
            .expect("exchanged");
        assert_eq!((answers.as_slice(), taken.len()), (&expected[..], 1));
        world.add(&job()).await;
    }
    run(&mut stranger, "rollback").await;
    world.end().await;
}

/// Waits until somebody waits for a lock of this connection's.
async fn until_somebody_waits(monitor: &mut PgConnection, holder: i32) {
    let sql = "select exists (select from pg_locks where $1 = any (pg_blocking_pids(pid)))";
    loop {
        let waits = sqlx::query_scalar(sql)
            .bind(holder)
            .fetch_one(&mut *monitor);
        if waits.await.expect("it answers") {
            return;
        }
    }
}

#[tokio::test]
async fn a_lock_that_is_over_at_once_puts_nothing_off() {
    let Some((world, claimed, mut stranger)) = running(20).await else {
        return;
    };
    let mut monitor = world.connection().await;
    let pid = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut stranger);
    let pid: i32 = pid.await.expect("it answers");
    // A machine that is slow to see it may need more than one try.
    for pair in claimed.chunks(2) {
        lock(&world, &mut stranger, &pair[0]).await;
        let batch: Vec<_> = pair.iter().map(done).collect();
        let mut settles = world.store.settle(&batch);
        let seen = tokio::select! {
            answers = &mut settles => {
                assert_eq!(answers.expect("settled"), [Settled::Held, APPLIED]);
                false
            }
            () = until_somebody_waits(&mut monitor, pid) => true,
        };
        run(&mut stranger, "rollback; begin").await;
        if seen && settles.await.expect("settled") == [APPLIED; 2] {
            return world.end().await;
        }
    }
    panic!("the lock was waited for in no try");
}

/// Held and stale are told apart: a lost lease is not offered again, and no result is dropped.
#[tokio::test]
async fn a_lost_lease_beside_a_held_row_is_stale_and_a_second_offer_too() {
    let Some((world, claimed, mut stranger)) = running(3).await else {
        return;
    };
    let lost = world.store.settle(&[again(&claimed[2])]).await;
    lost.expect("settled");
    let taken = world.claim(1).await;
    assert_eq!(ids(&taken), [claimed[2].id]);
    lock(&world, &mut stranger, &claimed[0]).await;
    // The new owner's row is held as well: that does not make the old token good.
    lock(&world, &mut stranger, &taken[0]).await;
    world.hand.advance(Duration::from_mins(2));
    let rescue = Settlement {
        outcome: OutcomeKind::Lost,
        only_if_expired: true,
        ..again(&claimed[0])
    };
    let [held, free, stale] = [&claimed[0], &claimed[1], &claimed[2]].map(done);

    let batch = [stale, held, free.clone(), free, done(&taken[0])];
    let answers = world.store.settle(&batch).await.expect("settled");
    let expected = [Settled::Stale, Settled::Held, APPLIED, Settled::Stale];
    assert_eq!((&answers[..4], answers[4]), (&expected[..], Settled::Held));

    let batch = [rescue, batch[1].clone()];
    let answers = world.store.settle(&batch[..1]).await.expect("settled");
    assert_eq!(answers, [Settled::Stale], "a rescue leaves it alone");
    let batch = [batch[0].clone(), done(&taken[0])];
    let answers = world.store.settle(&batch).await.expect("settled");
    assert_eq!(answers, [Settled::Stale, Settled::Held]);
    run(&mut stranger, "rollback").await;
    world.end().await;
}

#[tokio::test]
async fn a_handlers_open_transaction_holds_up_its_own_job_only() {
    let Some((world, claimed, stranger)) = running(2).await else {
        return;
    };
    drop(stranger);
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let completed = world.store.complete_in(&mut tx, &done(&claimed[0])).await;
    completed.expect("it holds its lease");
    let batch: Vec<_> = claimed.iter().map(again).collect();

    let answers = world.store.settle(&batch).await.expect("settled");
    let back = Settled::Applied(JobState::Queued);
    assert_eq!(answers, [Settled::Held, back]);

    tx.commit().await.expect("committed");
    let answers = world.store.settle(&batch[..1]).await.expect("settled");
    assert_eq!(answers, [Settled::Stale]);
    let ended = world.store.job(claimed[0].id).await.expect("it answers");
    assert_eq!(ended.map(|job| job.state), Some(JobState::Done));
    world.end().await;
}

fn with(key: &str, on_duplicate: OnDuplicate) -> NewJob {
    let new = keyed(key);
    let dedupe = new.dedupe.map(|dedupe| Dedupe {
        on_duplicate,
        ..dedupe
    });
    NewJob { dedupe, ..new }
}

/// Runs a job, named first, and another one.
async fn running_beside(world: &World, new: NewJob) -> [Claimed; 2] {
    let mut claimed = Vec::new();
    for new in [new, job()] {
        world.add(&new).await;
        claimed.extend(world.claim(1).await);
    }
    claimed.try_into().expect("both are due")
}

/// Whether the newcomer waits behind the running job, or replaces one that does.
#[tokio::test]
async fn a_newcomer_in_an_open_transaction_holds_up_the_job_before_it_only() {
    for waits_already in [false, true] {
        let Some(world) = patient().await else {
            return;
        };
        let claimed = running_beside(&world, keyed("k")).await;
        if waits_already {
            world.add(&with("k", OnDuplicate::Rerun)).await;
        }
        let mut conn = world.connection().await;
        let mut tx = conn.begin().await.expect("a transaction");
        let newcomer = match waits_already {
            true => with("k", OnDuplicate::Replace),
            false => with("k", OnDuplicate::Rerun),
        };
        let stored = world.store.insert_in(&mut tx, &[newcomer]).await;
        stored.expect("stored");

        let batch: Vec<_> = claimed.iter().map(done).collect();
        let answers = world.store.settle(&batch).await.expect("settled");
        assert_eq!(answers, [Settled::Held, APPLIED], "{waits_already}");

        tx.commit().await.expect("committed");
        let (answers, next) = world
            .store
            .exchange(&batch[..1], &request(5))
            .await
            .expect("exchanged");
        assert_eq!((answers, next.len()), (vec![APPLIED], 1));
        world.end().await;
    }
}

#[tokio::test]
async fn an_idempotency_key_that_is_held_holds_up_its_own_job_only() {
    let Some(world) = patient().await else {
        return;
    };
    let asked = NewJob {
        idempotency: Some(Idempotency {
            key: "request 7".to_owned(),
            window: Duration::from_hours(1),
            fingerprint: Fingerprint::from_stored(""),
        }),
        ..job()
    };
    let claimed = running_beside(&world, asked).await;
    let mut stranger = world.connection().await;
    let hold = "begin; select 1 from {q}.idempotency_keys for update";
    run(&mut stranger, &world.sql(hold)).await;

    let batch: Vec<_> = claimed.iter().map(done).collect();
    let answers = world.store.settle(&batch).await.expect("settled");
    assert_eq!(answers, [Settled::Held, APPLIED]);

    run(&mut stranger, "rollback").await;
    let answers = world.store.settle(&batch[..1]).await.expect("settled");
    assert_eq!(answers, [APPLIED]);
    world.end().await;
}

/// A lock on a whole table holds everything up: that is an error after the lock timeout, and
/// nothing has happened.
#[tokio::test]
async fn a_lock_on_the_table_is_waited_for_and_loses_nothing() {
    let timeout = Duration::from_millis(300);
    let Some(world) = World::with(|options| options.lock_timeout(timeout)).await else {
        return;
    };
    world.store.insert(&jobs(2)).await.expect("stored");
    let batch: Vec<_> = world.claim(2).await.iter().map(done).collect();
    let mut stranger = world.connection().await;
    let hold = "begin; lock table {q}.jobs in share mode";
    run(&mut stranger, &world.sql(hold)).await;

    let error = world.store.settle(&batch).await.expect_err("it waits");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("lock timeout"), "{error}");

    run(&mut stranger, "rollback").await;
    let answers = world.store.settle(&batch).await.expect("settled");
    assert_eq!(answers, [APPLIED; 2]);
    world.end().await;
}
