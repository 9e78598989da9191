//! What other processes are told, and how often.

use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::postgres::PgListener;
use sqlx::{Connection, Executor};

use super::stage::{World, job, soon};
use crate::job::{
    Change, Claimed, Dedupe, DedupeUntil, Due, JobType, NewJob, OnDuplicate, OutcomeKind,
    QueueName, Settlement, WorkerId,
};
use crate::seam::{Seam, SystemSeam};
use crate::store::postgres::notify::EVERY;
use crate::store::postgres::wake::FROM_A_TRANSACTION;
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::store::{Admin, ClaimRequest, Store, Suspects};

/// Ends what a listener has heard so far: notifications arrive in the order of their commits.
const FENCE: &str = "that was all";

/// The payloads that a listener has heard by now.
async fn heard(world: &World, listener: &mut PgListener) -> Vec<String> {
    let fence = sqlx::query("select pg_notify($1, $2)")
        .bind(&world.store.wakes.names.jobs)
        .bind(FENCE);
    let mut conn = world.connection().await;
    conn.execute(fence).await.expect("it is sent");
    let mut payloads = Vec::new();
    loop {
        let next = soon("the fence", listener.recv()).await;
        match next.expect("the connection lasts").payload() {
            FENCE => return payloads,
            payload => payloads.push(payload.to_owned()),
        }
    }
}

/// A store of its own that does something and is closed, and what a listener hears of that.
async fn told(
    options: impl FnOnce(PostgresOptions) -> PostgresOptions,
    act: impl AsyncFnOnce(&World, &PostgresStore),
) -> Option<Vec<String>> {
    let world = World::new().await?;
    let mut listener = world.listener().await;
    let store = world.another(options(world.options())).await;
    let sender = store.wakes.names.sender.clone();

    act(&world, &store).await;
    store.close().await;

    let mut heard = heard(&world, &mut listener).await;
    for payload in &mut heard {
        if *payload == sender {
            "sender".clone_into(payload);
        }
    }
    world.end().await;
    Some(heard)
}

#[tokio::test]
async fn an_enqueue_is_told_to_other_processes_even_if_the_store_is_closed_at_once() {
    let act = async |_: &World, store: &PostgresStore| {
        store.insert(&[job()]).await.expect("inserted");
    };
    let Some(heard) = told(|options| options, act).await else {
        return;
    };
    assert_eq!(heard, ["sender"]);
}

#[tokio::test]
async fn a_job_for_later_wakes_nobody_here_or_elsewhere() {
    let act = async |world: &World, store: &PostgresStore| {
        let later = |due| NewJob { due, ..job() };
        let hour = Duration::from_hours(1);
        let jobs = [
            later(Due::After(hour)),
            later(Due::At(SystemSeam::new().now().saturating_add(hour))),
        ];
        let mut listener = store.wakes();
        // A store that has just connected does not know what it has missed.
        soon("the hint of having connected", listener.wait()).await;
        let inserted = store.insert(&jobs).await;
        assert!(listener.wait().now_or_never().is_none(), "{inserted:?}");

        let mut conn = world.connection().await;
        let jobs = [later(Due::After(hour))];
        let staged = store.insert_in(&mut conn, &jobs).await;
        staged.expect("staged");
        let counts = store.counts().await.expect("counted");
        assert_eq!(counts.queued, 3);
    };
    let Some(heard) = told(|options| options, act).await else {
        return;
    };
    assert_eq!(heard, [""; 0]);
}

/// O-080: each notification keeps the commits of others waiting, so there are few.
#[tokio::test]
async fn o_080_a_thousand_enqueues_send_at_most_one_notification_per_pause() {
    let mut took = Duration::ZERO;
    let act = async |_: &World, store: &PostgresStore| {
        let seam = SystemSeam::new();
        for _ in 0..50 {
            let together = (0..20).map(async |_| store.insert(&[job()]).await);
            for inserted in futures_util::future::join_all(together).await {
                inserted.expect("inserted");
            }
        }
        took = seam.elapsed();
    };
    let Some(heard) = told(|options| options, act).await else {
        return;
    };
    // One at once, one per pause, and one for what is left at the end.
    let most = 2 + took.as_millis() / EVERY.as_millis();
    assert!(!heard.is_empty());
    assert!((heard.len() as u128) <= most, "{} in {took:?}", heard.len());
}

#[tokio::test]
async fn a_committed_transaction_tells_once_and_a_rolled_back_one_tells_nobody() {
    let act = async |world: &World, store: &PostgresStore| {
        let mut conn = world.connection().await;
        for commits in [false, true] {
            let mut tx = conn.begin().await.expect("a transaction");
            for _ in 0..3 {
                let mut other = job();
                other.queue = QueueName::new("mail").expect("a plain word");
                let staged = store.insert_in(&mut tx, &[job(), other]).await;
                staged.expect("staged");
            }
            let ended = match commits {
                true => tx.commit().await,
                false => tx.rollback().await,
            };
            ended.expect("ended");
        }
    };
    let Some(heard) = told(|options| options, act).await else {
        return;
    };
    assert_eq!(heard, [FROM_A_TRANSACTION]);
}

#[tokio::test]
async fn a_connection_without_a_transaction_tells_too() {
    let act = async |world: &World, store: &PostgresStore| {
        let mut conn = world.connection().await;
        let inserted = store.insert_in(&mut conn, &[job()]).await;
        inserted.expect("inserted");
    };
    let Some(heard) = told(|options| options, act).await else {
        return;
    };
    assert_eq!(heard, [FROM_A_TRANSACTION]);
}

#[tokio::test]
async fn a_store_that_is_not_to_notify_sends_nothing() {
    let act = async |world: &World, store: &PostgresStore| {
        store.insert(&[job()]).await.expect("inserted");
        let mut conn = world.connection().await;
        let mut tx = conn.begin().await.expect("a transaction");
        let staged = store.insert_in(&mut tx, &[job()]).await;
        staged.expect("staged");
        tx.commit().await.expect("committed");
    };
    let Some(heard) = told(|options| options.notify(false), act).await else {
        return;
    };
    assert_eq!(heard, [""; 0]);
}

#[tokio::test]
async fn behind_a_pooler_other_processes_are_told_all_the_same() {
    let act = async |_: &World, store: &PostgresStore| {
        store.insert(&[job()]).await.expect("inserted");
    };
    let Some(heard) = told(|options| options.behind_pooler(true), act).await else {
        return;
    };
    assert_eq!(heard, ["sender"]);
}

/// Claims the one job that is due.
async fn take(store: &PostgresStore) -> Claimed {
    let request = ClaimRequest {
        worker: WorkerId::new("w1").expect("a plain word"),
        queues: vec![QueueName::default_queue()],
        job_types: vec![(JobType::new("mail").expect("a plain word"), 1)],
        limit: 1,
        lease: Duration::from_mins(1),
        suspects: Suspects::NONE,
    };
    let claimed = store.claim(&request).await.expect("it answers");
    claimed.into_iter().next().expect("a job is due")
}

fn end(claimed: &Claimed, change: Change, outcome: OutcomeKind) -> Settlement {
    Settlement {
        id: claimed.id,
        token: claimed.token,
        change,
        outcome,
        error: None,
        attempts: 0,
        crashes: 0,
        snoozes: 0,
        only_if_expired: false,
    }
}

#[tokio::test]
async fn a_job_that_is_handed_back_or_replayed_is_told_and_one_that_ends_is_not() {
    let now = Change::Queued {
        delay: Duration::ZERO,
    };
    let steps = [
        (now, OutcomeKind::HandedBack, 1),
        (Change::Cancelled, OutcomeKind::Cancelled, 0),
        (Change::Done, OutcomeKind::Success, 0),
    ];
    let Some(world) = World::new().await else {
        return;
    };
    let silent = world.another(world.options().notify(false)).await;
    silent.insert(&[job()]).await.expect("inserted");
    let mut listener = world.listener().await;
    for (change, outcome, notifications) in steps {
        let store = world.another(world.options()).await;
        let claimed = take(&silent).await;
        let settled = store.settle(&[end(&claimed, change, outcome)]).await;
        settled.expect("settled");
        store.close().await;
        let told = heard(&world, &mut listener).await;
        assert_eq!(told.len(), notifications, "{outcome:?}");

        if outcome == OutcomeKind::Cancelled {
            let store = world.another(world.options()).await;
            store.replay(claimed.id, false).await.expect("replayed");
            store.close().await;
            assert_eq!(heard(&world, &mut listener).await.len(), 1, "replay");
        }
    }
    silent.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_completion_in_a_transaction_tells_of_the_job_that_waited_behind() {
    let Some(world) = World::new().await else {
        return;
    };
    let keyed = || NewJob {
        dedupe: Some(Dedupe {
            key: "k".to_owned(),
            until: DedupeUntil::Finished,
            on_duplicate: OnDuplicate::Rerun,
        }),
        ..job()
    };
    let silent = world.another(world.options().notify(false)).await;
    silent.insert(&[keyed()]).await.expect("inserted");
    let first = take(&silent).await;
    silent.insert(&[keyed()]).await.expect("inserted");
    let mut listener = world.listener().await;
    let mut conn = world.connection().await;
    let mut next = Some(first);
    for waiting in [1, 0] {
        let claimed = match next.take() {
            Some(first) => first,
            None => take(&silent).await,
        };
        let mut tx = conn.begin().await.expect("a transaction");
        let done = end(&claimed, Change::Done, OutcomeKind::Success);
        let completed = world.store.complete_in(&mut tx, &done).await;
        completed.expect("completed");
        tx.commit().await.expect("committed");
        let told = heard(&world, &mut listener).await;
        assert_eq!(told, vec![FROM_A_TRANSACTION; waiting]);
    }
    silent.close().await;
    world.end().await;
}
