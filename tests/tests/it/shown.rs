//! What a lock alone does not give: shown, and what gives it.

use std::sync::Mutex;
use std::time::Duration;

use queue_runtime::{Data, JobContext, JobId, JobState, Queue, Worker, job};
use tokio::sync::Notify;

use crate::world::World;

fn note(effects: &Mutex<Vec<u32>>, order: u32) {
    effects.lock().expect("no panic while noting").push(order);
}

fn seen(effects: &Mutex<Vec<u32>>) -> Vec<u32> {
    effects.lock().expect("no panic while noting").clone()
}

#[job(dedupe = "order")]
async fn charge_locked(order: u32, effects: Data<Mutex<Vec<u32>>>) {
    note(&effects, order);
}

#[job(dedupe = "order", idempotency = "order")]
async fn charge_once(order: u32, effects: Data<Mutex<Vec<u32>>>) {
    note(&effects, order);
}

fn worker(queue: &Queue, effects: &Data<Mutex<Vec<u32>>>) -> queue_runtime::WorkerBuilder {
    Worker::builder(queue)
        .job::<ChargeLockedJob>()
        .job::<ChargeOnceJob>()
        .shared(effects.clone())
}

/// A client that had no answer asks again, after the job of its first request has ended. The lock is
/// free by then: it kept two jobs from living at once, and that is all it is for.
#[tokio::test]
async fn a_lock_without_an_idempotency_key_makes_two_jobs_of_one_request() {
    let world = World::new();
    let effects = Data::new(Mutex::new(Vec::new()));
    let first = charge_locked::enqueue(&world.queue, 7)
        .await
        .expect("enqueued");
    world.run(worker(&world.queue, &effects), &[first.id]).await;

    let again = charge_locked::enqueue(&world.queue, 7)
        .await
        .expect("enqueued");
    assert!(!again.duplicate);
    world.run(worker(&world.queue, &effects), &[again.id]).await;

    assert_ne!(first.id, again.id);
    assert_eq!(seen(&effects), [7, 7], "charged twice");
}

#[tokio::test]
async fn an_idempotency_key_makes_one_job_of_one_request() {
    let world = World::new();
    let effects = Data::new(Mutex::new(Vec::new()));
    let first = charge_once::enqueue(&world.queue, 7)
        .await
        .expect("enqueued");
    world.run(worker(&world.queue, &effects), &[first.id]).await;

    let again = charge_once::enqueue(&world.queue, 7)
        .await
        .expect("answered");

    assert_eq!((again.id, again.duplicate), (first.id, true));
    assert_eq!(seen(&effects), [7]);
}

/// Takes effect at once, and its first attempt never ends by itself.
#[job(dedupe = "order", timeout = "none")]
async fn ship(order: u32, ctx: JobContext, effects: Data<Mutex<Vec<u32>>>, begun: Data<Notify>) {
    note(&effects, order);
    if ctx.attempt() == 1 {
        begun.notify_one();
        std::future::pending::<()>().await;
    }
}

/// Does the same, unless it was done before.
#[job(dedupe = "order", timeout = "none")]
async fn ship_once(
    order: u32,
    ctx: JobContext,
    effects: Data<Mutex<Vec<u32>>>,
    begun: Data<Notify>,
) {
    if !seen(&effects).contains(&order) {
        note(&effects, order);
    }
    if ctx.attempt() == 1 {
        begun.notify_one();
        std::future::pending::<()>().await;
    }
}

/// Runs a job on a worker that dies after the effect, and on another one afterwards.
async fn across_a_crash(world: &World, id: JobId, effects: &Data<Mutex<Vec<u32>>>) {
    let begun = Data::new(Notify::new());
    let worker = || {
        Worker::builder(&world.queue)
            .job::<ShipJob>()
            .job::<ShipOnceJob>()
            .shared(effects.clone())
            .shared(begun.clone())
            .rescue_every(Duration::from_secs(1))
    };
    tokio::select! {
        ended = world.run_until(worker(), async || false) => panic!("nobody asks it to end: {ended:?}"),
        () = begun.notified() => {}
    }
    world.run(worker(), &[id]).await;
    let job = world.job(id).await;
    assert_eq!((job.state, job.attempts), (JobState::Done, 2));
}

#[tokio::test]
async fn a_lock_around_a_handler_that_is_not_idempotent_makes_two_effects_of_a_crash() {
    let world = World::new();
    let effects = Data::new(Mutex::new(Vec::new()));
    let sent = ship::enqueue(&world.queue, 7).await.expect("enqueued");

    across_a_crash(&world, sent.id, &effects).await;

    assert_eq!(seen(&effects), [7, 7], "shipped twice, by one job");
}

#[tokio::test]
async fn an_idempotent_handler_makes_one_effect_of_a_crash() {
    let world = World::new();
    let effects = Data::new(Mutex::new(Vec::new()));
    let sent = ship_once::enqueue(&world.queue, 7).await.expect("enqueued");

    across_a_crash(&world, sent.id, &effects).await;

    assert_eq!(seen(&effects), [7]);
}
