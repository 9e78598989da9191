//! What a store hears of other processes, and what becomes of the connection on which it listens.

use sqlx::Connection;

use super::stage::{World, job, soon};
use crate::store::postgres::PostgresStore;
use crate::store::{Store, WakeListener};

/// Listens on a store, until the connection of its own is known to work.
async fn listen(store: &PostgresStore) -> WakeListener {
    let mut wakes = store.wakes();
    hears(store, 0).await;
    // The hint of the new connection.
    soon("the first hint", wakes.wait()).await;
    wakes
}

/// Waits until a store hears, after so many losses.
async fn hears(store: &PostgresStore, losses: u64) {
    let mut listening = store.listening();
    let works = listening.wait_for(|state| state.is_hearing && state.losses == losses);
    soon("hearing", works).await.expect("the store lives");
}

/// The backends that listen for a store, by their process ids.
async fn backends(world: &World) -> Vec<i32> {
    let asked = format!("LISTEN \"{}\"%", world.store.wakes.names.jobs);
    let mut conn = world.connection().await;
    sqlx::query_scalar("select pid from pg_stat_activity where query like $1 order by pid")
        .bind(asked)
        .fetch_all(&mut conn)
        .await
        .expect("everybody may look")
}

#[tokio::test]
async fn an_enqueue_of_one_process_wakes_the_workers_of_another() {
    let Some(world) = World::new().await else {
        return;
    };
    let other = world.another(world.options()).await;
    let mut wakes = listen(&world.store).await;

    other.insert(&[job()]).await.expect("inserted");

    soon("a hint", wakes.wait()).await;
    other.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_process_is_not_woken_again_by_what_it_told_others() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut raw = world.listener().await;
    let mut wakes = listen(&world.store).await;
    let before = world.store.wakes.here.hints();

    world.store.insert(&[job()]).await.expect("inserted");
    soon("the notification", raw.recv())
        .await
        .expect("it lasts");

    // What another process tells next is heard after our own.
    let other = world.another(world.options()).await;
    soon("a hint", wakes.wait()).await;
    other.insert(&[job()]).await.expect("inserted");
    soon("another hint", wakes.wait()).await;
    assert_eq!(world.store.wakes.here.hints() - before, 2);
    other.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_callers_commit_wakes_the_workers_of_its_own_process_too() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut wakes = listen(&world.store).await;
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let staged = world.store.insert_in(&mut tx, &[job()]).await;
    staged.expect("staged");

    tx.commit().await.expect("committed");

    soon("a hint", wakes.wait()).await;
    world.end().await;
}

/// O-066: a listening connection that is ended comes back by itself, and hears.
#[tokio::test]
async fn o_066_a_listener_whose_backend_is_ended_hears_again() {
    let Some(world) = World::new().await else {
        return;
    };
    let other = world.another(world.options()).await;
    let mut wakes = listen(&world.store).await;
    for losses in 1..4 {
        let mut conn = world.connection().await;
        for backend in backends(&world).await {
            sqlx::query("select pg_terminate_backend($1)")
                .bind(backend)
                .execute(&mut conn)
                .await
                .expect("we may end it");
        }

        // What was enqueued meanwhile was not heard, so there is a hint in any case.
        soon("a hint for what was missed", wakes.wait()).await;
        hears(&world.store, losses).await;
        other.insert(&[job()]).await.expect("inserted");
        soon("a hint", wakes.wait()).await;
    }
    other.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_store_listens_on_one_connection_and_gives_it_back_when_it_ends() {
    let Some(world) = World::new().await else {
        return;
    };
    for closes in [true, false] {
        let store = world.another(world.options()).await;
        assert_eq!(backends(&world).await, [0; 0], "nobody wants to hear yet");
        let _wakes = [listen(&store).await, store.wakes(), store.wakes()];
        assert_eq!(backends(&world).await.len(), 1);
        let listening = store.listening();

        if closes {
            store.close().await;
        }
        drop(store);

        // A backend ends a moment after its client has gone.
        let gone = async { while !backends(&world).await.is_empty() {} };
        soon("the end of the connection", gone).await;
        assert!(!listening.borrow().is_hearing);
    }
    world.end().await;
}

#[tokio::test]
async fn behind_a_pooler_nobody_listens() {
    let Some(world) = World::new().await else {
        return;
    };
    let store = world.another(world.options().behind_pooler(true)).await;
    let mut wakes = store.wakes();
    store.insert(&[job()]).await.expect("inserted");

    soon("the hint of this process", wakes.wait()).await;
    assert_eq!(backends(&world).await, [0; 0]);
    assert!(!store.listening().borrow().is_hearing);
    store.close().await;
    world.end().await;
}
