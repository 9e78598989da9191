//! Transactions of the application's that overlap, fail in part, or are given up.

use futures_util::future::join;
use futures_util::poll;
use queue_runtime::{EnqueueError, job};
use sqlx::Executor;

use crate::world::File;

#[job(idempotency = "request", dedupe = "user")]
async fn greets(request: String, user: i64) {
    let _ = (request, user);
}

#[tokio::test]
async fn what_is_given_up_while_it_waits_for_the_lock_leaves_no_lock_behind() {
    let file = File::new();
    let queue = file.open().await;
    // So that a connection is open, and giving up meets the wait for the lock.
    drop(queue.begin().await.expect("a transaction"));
    let held = queue.begin().await.expect("a transaction");

    for user in 0..5 {
        let mut begin = Box::pin(queue.begin());
        assert!(poll!(&mut begin).is_pending());
        let enqueue = greets::enqueue(&queue, user.to_string(), user);
        let mut enqueue = enqueue.into_future();
        assert!(poll!(&mut enqueue).is_pending());
    }

    held.rollback().await.expect("rolled back");
    let next = queue.begin().await.expect("the lock is free");
    next.rollback().await.expect("rolled back");
    let sent = greets::enqueue(&queue, "last".to_owned(), 9).await;
    assert!(!sent.expect("enqueued").duplicate);
    queue.close().await;
}

#[tokio::test]
async fn one_key_inside_and_beside_an_open_transaction_makes_one_job() {
    let file = File::new();
    let queue = file.open().await;
    let mut tx = queue.begin().await.expect("a transaction");
    let inside = greets::enqueue(&queue, "a".to_owned(), 7).in_tx(&mut tx);
    let inside = inside.await.expect("enqueued");

    let beside = greets::enqueue(&queue, "b".to_owned(), 7).into_future();
    let (beside, committed) = join(beside, tx.commit()).await;

    committed.expect("committed");
    let beside = beside.expect("answered");
    assert_eq!((beside.id, beside.duplicate), (inside.id, true));
    queue.close().await;
}

#[tokio::test]
async fn going_back_to_a_savepoint_takes_its_jobs_and_their_keys_along() {
    let file = File::new();
    let queue = file.open().await;
    let mut tx = queue.begin().await.expect("a transaction");
    let kept = greets::enqueue(&queue, "a".to_owned(), 1).in_tx(&mut tx);
    let kept = kept.await.expect("enqueued");
    // The library's own savepoint has this name as well.
    tx.execute("savepoint queue_insert").await.expect("set");
    let undone = greets::enqueue(&queue, "b".to_owned(), 2).in_tx(&mut tx);
    let undone = undone.await.expect("enqueued");

    tx.execute("rollback to queue_insert")
        .await
        .expect("undone");
    tx.commit().await.expect("committed");

    let found = async |id| queue.job(id).await.expect("it answers").is_some();
    assert!(found(kept.id).await && !found(undone.id).await);
    let again = greets::enqueue(&queue, "b".to_owned(), 2).await;
    assert!(!again.expect("both keys are free").duplicate);
    queue.close().await;
}

#[tokio::test]
async fn a_conflict_inside_a_transaction_leaves_it_usable() {
    let file = File::new();
    let queue = file.open().await;
    let mut tx = queue.begin().await.expect("a transaction");
    let first = greets::enqueue(&queue, "a".to_owned(), 1).in_tx(&mut tx);
    let first = first.await.expect("enqueued");

    let conflict = greets::enqueue(&queue, "a".to_owned(), 2).in_tx(&mut tx);
    let conflict = conflict.await.expect_err("another payload");

    assert!(
        matches!(conflict, EnqueueError::IdempotencyConflict { existing, .. } if existing == first.id)
    );
    tx.commit().await.expect("committed");
    let job = queue.job(first.id).await.expect("it answers");
    assert!(job.is_some());
    queue.close().await;
}
