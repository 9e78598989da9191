//! Duplicates: dedupe keys and idempotency keys, from the declaration to the answer.

use std::time::Duration;

use queue_runtime::{EnqueueError, JobState, job};

use crate::world::{File, World};

#[job(dedupe = "user_id")]
async fn welcome(user_id: i64, email: &str) {
    let _ = (user_id, email);
}

#[job(idempotency = "order", idempotency_for = "1h")]
async fn charge(order: u32, amount: u32) {
    let _ = (order, amount);
}

#[tokio::test]
async fn a_duplicate_is_answered_with_the_existing_id() {
    let world = World::new();
    let first = welcome::enqueue(&world.queue, 1, "a@b.example")
        .await
        .expect("enqueued");
    let second = welcome::enqueue(&world.queue, 1, "a@b.example")
        .await
        .expect("answered");
    let other = welcome::enqueue(&world.queue, 1, "new@b.example")
        .await
        .expect("answered");
    let next = welcome::enqueue(&world.queue, 2, "a@b.example")
        .await
        .expect("enqueued");

    assert!(!first.duplicate);
    assert_eq!(
        (second.id, second.duplicate, second.payload_differs),
        (first.id, true, false)
    );
    assert_eq!(
        (other.id, other.duplicate, other.payload_differs),
        (first.id, true, true)
    );
    assert_ne!(next.id, first.id);
    assert_eq!(
        world
            .queue
            .counts()
            .await
            .expect("the store answers")
            .total(),
        2
    );
}

#[tokio::test]
async fn a_request_repeated_with_another_payload_is_a_typed_conflict() {
    let world = World::new();
    let first = charge::enqueue(&world.queue, 7, 100)
        .await
        .expect("enqueued");
    let again = charge::enqueue(&world.queue, 7, 100)
        .await
        .expect("answered");
    assert_eq!((again.id, again.duplicate), (first.id, true));

    let error = charge::enqueue(&world.queue, 7, 200)
        .await
        .expect_err("another amount");

    let EnqueueError::IdempotencyConflict { existing, fields } = &error else {
        panic!("not a conflict: {error}");
    };
    assert_eq!(
        (*existing, fields.as_slice()),
        (first.id, ["amount".to_owned()].as_slice())
    );
    assert!(
        !error.to_string().contains("200"),
        "no value is told: {error}"
    );
    assert_eq!(
        world
            .queue
            .counts()
            .await
            .expect("the store answers")
            .total(),
        1
    );
}

#[tokio::test]
async fn a_key_answers_beyond_its_window_while_its_job_is_unfinished() {
    let world = World::new();
    let first = charge::enqueue(&world.queue, 7, 100)
        .await
        .expect("enqueued");
    world.seam.advance(Duration::from_hours(5));
    let late = charge::enqueue(&world.queue, 7, 100)
        .await
        .expect("answered");
    assert_eq!((late.id, late.state), (first.id, JobState::Queued));

    world.queue.cancel(first.id).await.expect("it waits");
    let after = charge::enqueue(&world.queue, 7, 100)
        .await
        .expect("enqueued");
    assert_ne!(after.id, first.id);
}

#[tokio::test]
async fn a_key_given_by_the_caller_wins_over_the_declared_one() {
    let world = World::new();
    let header = || charge::enqueue(&world.queue, 7, 100).idempotency_key("from-a-header");
    let first = header().await.expect("enqueued");
    assert_eq!(header().await.expect("answered").id, first.id);
    let declared = charge::enqueue(&world.queue, 7, 100)
        .await
        .expect("enqueued");
    assert_ne!(declared.id, first.id);
}

#[tokio::test]
async fn a_bulk_answers_each_item_in_order() {
    let world = World::new();
    let jobs =
        [(7, 100), (8, 100), (7, 100), (8, 300)].map(|(order, amount)| ChargeJob { order, amount });

    let answers = world.queue.enqueue_all(jobs).await.expect("all valid");

    let told: Vec<_> = answers
        .iter()
        .map(|a| a.as_ref().map(|e| e.duplicate))
        .collect();
    assert!(matches!(
        told.as_slice(),
        [
            Ok(false),
            Ok(false),
            Ok(true),
            Err(EnqueueError::IdempotencyConflict { .. })
        ]
    ));
    assert_eq!(
        world
            .queue
            .counts()
            .await
            .expect("the store answers")
            .total(),
        2
    );
}

#[tokio::test]
async fn a_hundred_concurrent_requests_with_one_key_give_one_job() {
    let file = File::new();
    let queue = file.open().await;
    let requests = (0..100).map(|_| charge::enqueue(&queue, 7, 100).into_future());
    let answers = futures_util::future::join_all(requests).await;

    let ids: std::collections::BTreeSet<_> = answers
        .iter()
        .map(|answer| answer.as_ref().expect("answered").id)
        .collect();
    let fresh = answers
        .iter()
        .flatten()
        .filter(|answer| !answer.duplicate)
        .count();
    assert_eq!((ids.len(), fresh), (1, 1));
    assert_eq!(queue.counts().await.expect("the store answers").total(), 1);
    queue.close().await;
}
