//! Connections that are all in use, and connections that are gone.

use std::time::Duration;

use futures_util::future::{Either, join_all, select, select_all};
use futures_util::poll;
use sqlx::pool::PoolConnection;
use sqlx::{Connection, Postgres};

use super::world::{Ground, World, done, job, jobs, keyed, request};
use crate::error::{StoreError, StoreErrorKind};
use crate::job::{Claimed, JobState, Settled};
use crate::seam::SystemSeam;
use crate::store::postgres::PostgresOptions;
use crate::store::postgres::connect::within;
use crate::store::{Admin, Extended, Inserted, Retention, Store, Versions};

/// Longer than anything here takes, and shorter than what closing waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// O-074: whoever uses up the store's connections, leases are kept.
#[tokio::test]
async fn a_pool_that_is_used_up_keeps_no_lease_from_being_renewed() {
    let Some(world) = World::with(|options| options.connections(2).expect("a number")).await else {
        return;
    };
    world.store.insert(&jobs(1)).await.expect("stored");
    let claimed = world.claim(1).await;
    let leases: Vec<_> = claimed.iter().map(Claimed::lease).collect();
    let mut heartbeat = world.store.heartbeat().await.expect("connected");
    let busy = all(&world).await;
    assert_eq!(busy.len(), 2);

    let kept = heartbeat.extend(&leases, Duration::from_mins(1)).await;
    assert_eq!(kept.expect("renewed"), [Extended::Kept]);
    let (claim, insert) = (request(1), jobs(1));
    let (claim, insert, counts) = tokio::join!(
        world.store.claim(&claim),
        world.store.insert(&insert),
        world.store.counts()
    );
    for error in [claim.map(drop), insert.map(drop), counts.map(drop)] {
        let error = error.expect_err("nobody gives a connection back");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(
            error.to_string().contains("no connection became free"),
            "{error}"
        );
        assert!(error.to_string().contains("`connections`"), "{error}");
    }
    // Also one that was not there yet.
    let mut another = world.store.heartbeat().await.expect("connected");
    let kept = another.extend(&leases, Duration::from_mins(1)).await;
    assert_eq!(kept.expect("renewed"), [Extended::Kept]);

    drop(busy);
    assert_eq!(
        world.store.counts().await.expect("free again").processing,
        1
    );
    world.end().await;
}

/// More producers than there are connections wait for a key that an open transaction holds; what
/// the worker of the same process does with its jobs answers while they do.
#[tokio::test]
async fn producers_that_wait_for_a_key_keep_no_worker_from_its_jobs() {
    let Some(world) = World::with(|options| options.lock_timeout(PATIENCE)).await else {
        return;
    };
    let mut monitor = world.connection().await;
    world.add(&job()).await;
    let mut application = world.connection().await;
    let mut holder = application.begin().await.expect("a transaction");
    let held = [keyed("k")];
    let stored = world.store.insert_in(&mut holder, &held).await;
    stored.expect("nobody else has the key");

    let producers: Vec<_> = (0..20).map(|_| [keyed("k")]).collect();
    let producers = producers.iter().map(|job| world.store.insert(job));
    let producers = select_all(producers.map(Box::pin));
    let worker = async {
        world.until_waiting(3, &mut monitor).await;
        let claimed = world.claim(1).await;
        let settled = world.store.settle(&[done(&claimed[0])]).await;
        assert_eq!(
            settled.expect("recorded"),
            [Settled::Applied(JobState::Done)]
        );
        let look = (request(1), Retention::default());
        let next_due = world.store.next_due(&look.0).await;
        assert_eq!(next_due.expect("answered"), None);
        let expired = world.store.expired(1).await;
        assert!(expired.expect("answered").is_empty());
        let pruned = world.store.prune(&look.1, 1).await;
        pruned.expect("answered");
    };
    let producers = match select(producers, Box::pin(worker)).await {
        Either::Left(((answer, ..), _)) => panic!("one did not wait any more: {answer:?}"),
        Either::Right(((), producers)) => producers,
    };
    holder.commit().await.expect("committed");
    for answer in join_all(producers.into_inner()).await {
        let answer = answer.expect("nobody waits in vain");
        assert!(
            matches!(&answer[..], [Inserted::Duplicate { existing, .. }] if *existing == held[0].id),
            "{answer:?}"
        );
    }
    world.end().await;
}

/// A connection may be held by a runtime that nobody drives any more. The clock of the store's
/// waits runs off here, so that nobody has to wait for the bound.
#[tokio::test]
async fn closing_does_not_wait_for_ever_for_a_connection_that_is_not_given_back() {
    let on_hand = |options: PostgresOptions| {
        let hand = options.clock.clone().expect("a clock");
        options.seam(hand)
    };
    for is_workers in [true, false] {
        let Some(world) = World::with(on_hand).await else {
            return;
        };
        let pools = &world.store.pools;
        let pool = if is_workers {
            &pools.worker
        } else {
            &pools.common
        };
        let kept = pool.acquire().await.expect("free");
        let mut close = world.store.close();
        assert!(poll!(&mut close).is_pending(), "it may come back yet");
        world.hand.rush();
        let closed = within(&SystemSeam::new(), PATIENCE, "close", close).await;
        closed.expect("it has given up");
        let refused = world.store.counts().await.expect_err("it is closed");
        assert_eq!(refused.kind(), StoreErrorKind::Closed);
        drop(kept);
        world.end().await;
    }
}

#[test]
fn a_pool_too_small_for_a_worker_and_a_producer_is_refused() {
    let options = PostgresOptions::new("postgres://app@host/db").expect("valid");
    for count in [0, 1, 1_001] {
        let refused = options.clone().connections(count).expect_err("refused");
        let said = refused.to_string();
        assert!(said.contains(&format!("connections {count}")), "{said}");
        assert!(said.contains("must be 2 to 1000"), "{said}");
    }
}

/// Ends all other sessions of the database, waits until they are gone, and returns how many there
/// were. The server is done with the request before they have noticed it.
async fn terminate(world: &World) -> usize {
    let mut conn = world.connection().await;
    let end = "select pid, pg_terminate_backend(pid) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()";
    let ended = sqlx::query_as::<_, (i32, bool)>(end).fetch_all(&mut conn);
    let ended = ended.await.expect("a superuser may");
    let ended: Vec<i32> = ended.into_iter().map(|(pid, _)| pid).collect();
    let there_are = "select exists (select from pg_stat_activity where pid = any ($1))";
    let mut are_there = true;
    while are_there {
        let look = sqlx::query_scalar(there_are).bind(&ended);
        are_there = look.fetch_one(&mut conn).await.expect("it answers");
    }
    ended.len()
}

/// Takes all connections of a store's pools.
async fn all(world: &World) -> Vec<PoolConnection<Postgres>> {
    let mut all = Vec::new();
    for pool in [&world.store.pools.worker, &world.store.pools.common] {
        for _ in 0..pool.options().get_max_connections() {
            all.push(pool.acquire().await.expect("free"));
        }
    }
    all
}

/// Opens all connections of a store's pools.
async fn warm(world: &World) {
    assert_eq!(all(world).await.len(), 5);
}

/// Says whether a verb works at once, or after one error that says that trying again helps.
async fn works<T>(name: &str, verb: impl AsyncFn() -> Result<T, StoreError>) -> (T, bool) {
    match verb().await {
        Ok(done) => (done, false),
        Err(error) => {
            assert!(error.is_transient(), "{name}: {error}");
            let done = verb().await;
            let done = done.unwrap_or_else(|error| panic!("{name}, the second time: {error}"));
            (done, true)
        }
    }
}

/// O-070: the server has ended every session; nobody has to open the store again.
#[tokio::test]
async fn after_all_sessions_were_ended_each_verb_fails_once_at_most() {
    let Some(ground) = Ground::with_settings(&[]).await else {
        return;
    };
    let world = World::on(ground, |options| options).await;
    let store = &world.store;
    let mut heartbeat = store.heartbeat().await.expect("connected");
    store.insert(&jobs(3)).await.expect("stored");
    let claimed = store.claim(&request(2)).await.expect("claimed");
    let leases: Vec<_> = claimed.iter().map(Claimed::lease).collect();
    let settlements: Vec<_> = claimed.iter().map(done).collect();

    let mut failed = 0;
    macro_rules! after_the_end {
        ($verb:literal, $call:expr) => {{
            warm(&world).await;
            assert!(terminate(&world).await >= 5, "all sessions were open");
            let (done, has_failed) = works($verb, async || $call.await).await;
            failed += usize::from(has_failed);
            done
        }};
    }
    after_the_end!("insert", store.insert(&jobs(1)));
    after_the_end!("insert with a key", store.insert(&[keyed("k")]));
    after_the_end!("counts", store.counts());
    after_the_end!("expired", store.expired(1));
    after_the_end!("next_due", store.next_due(&request(1)));
    after_the_end!("job", store.job(claimed[0].id));
    after_the_end!("newest_version", store.newest_version("k"));
    after_the_end!("prune", store.prune(&Retention::default(), 1));
    after_the_end!("settle", store.settle(&settlements));
    after_the_end!("claim", store.claim(&request(1)));
    after_the_end!("migrate", store.migrate());

    // The heartbeat has a connection of its own.
    terminate(&world).await;
    let error = heartbeat.extend(&leases, Duration::from_mins(1)).await;
    assert!(error.expect_err("it is gone").is_transient());
    let answers = heartbeat.extend(&leases, Duration::from_mins(1)).await;
    assert_eq!(answers.expect("it has a new one").len(), 2);
    println!("{failed} of 11 verbs failed once");

    drop(heartbeat);
    world.end().await;
}
