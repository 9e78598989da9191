//! Connections that are all in use, and connections that are gone.

use std::time::Duration;

use super::world::{Ground, World, done, jobs, keyed, request};
use crate::error::{StoreError, StoreErrorKind};
use crate::job::Claimed;
use crate::store::{Admin, Extended, Retention, Store, Versions};

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
    let busy = [
        world.store.pool.acquire().await.expect("free"),
        world.store.pool.acquire().await.expect("free"),
    ];

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

#[test]
fn a_pool_too_small_for_a_worker_and_a_producer_is_refused() {
    use crate::store::postgres::PostgresOptions;
    let options = PostgresOptions::new("postgres://app@host/db").expect("valid");
    for count in [0, 1, 1_001] {
        let refused = options.clone().connections(count).expect_err("refused");
        let said = refused.to_string();
        assert!(said.contains(&format!("connections {count}")), "{said}");
        assert!(said.contains("must be 2 to 1000"), "{said}");
    }
}

/// Ends all other sessions of the database, and returns how many there were.
async fn terminate(world: &World) -> i64 {
    let sql = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()";
    let ended = sqlx::query_scalar(sql)
        .fetch_one(&mut world.connection().await)
        .await;
    ended.expect("a superuser may")
}

/// Opens all connections of a store's pool.
async fn warm(world: &World) {
    let mut all = Vec::new();
    for _ in 0..world.store.options.connections {
        all.push(world.store.pool.acquire().await.expect("free"));
    }
    assert_eq!(all.len(), 5);
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
