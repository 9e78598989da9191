//! A pooler between us and the server: told of it, everything works; untold, opening says so.

use futures_util::future::join_all;
use queue_runtime::error::StoreErrorKind;
use queue_runtime::store::postgres::PostgresStore;
use queue_runtime::store::{Admin, Store};
use queue_runtime::{Queue, job};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use xtask::servers::{PgBouncer, PoolMode, find};

use super::world::{is_missing, options, refusal, server};

#[job(dedupe = "order")]
async fn ship(order: i64) {
    let _ = order;
}

/// O-073: the error names the option, whether the pooler refuses our settings or drops them.
#[tokio::test]
async fn a_pooler_that_nobody_told_us_of_is_named_when_the_queue_is_opened() {
    if is_missing(find::pgbouncer().map(drop)) {
        return;
    }
    let Some(server) = server(&[]) else { return };
    let ignored = ("ignore_startup_parameters", "extra_float_digits,options");
    for (mode, settings) in [
        (PoolMode::Transaction, &[][..]),
        (PoolMode::Transaction, &[ignored]),
        (PoolMode::Session, &[ignored]),
    ] {
        let pooler = PgBouncer::start_with(&server, mode, settings).expect("it starts");
        for migrate in [true, false] {
            let error = refusal(options(&pooler.url()).migrate(migrate)).await;
            let said = error.to_string();
            assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{said}");
            assert!(said.contains("`behind_pooler(true)`"), "{said}");
            assert!(said.contains("`?pooler=transaction`"), "{said}");
        }
        let told = format!("{}?pooler=transaction", pooler.url());
        let store = PostgresStore::open(options(&told).migrate(true)).await;
        let store = store.expect("told of the pooler it opens");
        assert_eq!(store.counts().await.expect("it answers").total(), 0);
        store.close().await;
    }
}

/// O-072: with fewer servers than clients every statement meets one that it has not met before.
#[tokio::test]
async fn many_clients_on_two_servers_never_meet_the_statements_of_others() {
    if is_missing(find::pgbouncer().map(drop)) {
        return;
    }
    let Some(server) = server(&[]) else { return };
    let few = [("default_pool_size", "2")];
    let pooler = PgBouncer::start_with(&server, PoolMode::Transaction, &few).expect("it starts");
    let url = format!("{}?pooler=transaction", pooler.url());
    let queues = join_all((0..3).map(|_| async {
        let opening = Queue::open(&url).migrate();
        opening.await.expect("all start at once")
    }))
    .await;

    let sent = join_all((0..60).map(|order| {
        let queue = &queues[order % 3];
        // Each order twice, by two programs.
        async move { ship::enqueue(queue, (order / 2) as i64).await }
    }))
    .await;

    let new = sent.iter().filter(|sent| {
        let sent = sent.as_ref().expect("enqueued");
        !sent.duplicate
    });
    assert_eq!(new.count(), 30);
    let counts = join_all(queues.iter().map(Queue::counts)).await;
    for counts in counts {
        assert_eq!(counts.expect("it answers").queued, 30);
    }

    // In a transaction of the application's, which goes through the pooler as well.
    let through: PgConnectOptions = pooler.url().parse().expect("valid");
    let through = through
        .extra_float_digits(None::<i8>)
        .statement_cache_capacity(0);
    let mut conn = through.connect().await.expect("connected");
    for (order, is_kept) in [(100, true), (101, false)] {
        let mut tx = conn.begin().await.expect("a transaction");
        let sent = ship::enqueue(&queues[0], order).in_tx(&mut tx).await;
        let sent = sent.expect("enqueued");
        match is_kept {
            true => tx.commit().await.expect("committed"),
            false => tx.rollback().await.expect("rolled back"),
        }
        let found = queues[1].job(sent.id).await.expect("it answers");
        assert_eq!(found.is_some(), is_kept);
    }
    for queue in queues {
        queue.close().await;
    }
}
