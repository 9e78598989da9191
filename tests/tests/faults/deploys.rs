//! Old and new programs on one store: jobs wait for somebody who knows them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use queue_runtime::job::{DeadReason, JobType, QueueName};
use queue_runtime::{EnqueueError, Job, JobContext, JobState, Queue, Worker, WorkerBuilder, job};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::world::{World, asks_again, beside, finals, job};

on! { memory:
    real {
        o_094_an_old_worker_does_not_touch_a_chain_of_new_jobs
        o_095_a_job_that_nobody_knows_waits_and_is_counted
        o_096_a_payload_of_an_older_shape_is_kept_and_runs_after_a_fix
        o_097_workers_of_overlapping_job_types_run_what_they_know
    }
}

on! { sqlite:
    real {
        o_094_an_old_worker_does_not_touch_a_chain_of_new_jobs
        o_095_a_job_that_nobody_knows_waits_and_is_counted
        o_096_a_payload_of_an_older_shape_is_kept_and_runs_after_a_fix
        o_097_workers_of_overlapping_job_types_run_what_they_know
    }
}

on! { postgres:
    real {
        o_094_an_old_worker_does_not_touch_a_chain_of_new_jobs
        o_095_a_job_that_nobody_knows_waits_and_is_counted
        o_096_a_payload_of_an_older_shape_is_kept_and_runs_after_a_fix
        o_097_workers_of_overlapping_job_types_run_what_they_know
    }
}

#[job]
async fn of_the_old_program() {}

/// Each run enqueues the next one.
#[job]
async fn of_the_new_program(left: u32, ctx: JobContext) -> Result<(), EnqueueError> {
    match left {
        0 => Ok(()),
        left => of_the_new_program::enqueue(&ctx, left - 1).await.map(drop),
    }
}

fn worker(queue: &Queue) -> WorkerBuilder {
    Worker::builder(queue).poll(Duration::from_millis(5))
}

async fn o_094_an_old_worker_does_not_touch_a_chain_of_new_jobs(world: &World) {
    const CHAIN: u32 = 10;
    let ((old, asks), new) = (world.open_faulty().await, world.open().await);
    let stop = Semaphore::new(0);
    let stopped = async || stop.acquire().await.expect("never closed").forget();
    let old_worker = worker(&old)
        .job::<OfTheOldProgramJob>()
        .run_until(stopped());
    let new_worker = worker(&new)
        .job::<OfTheOldProgramJob>()
        .job::<OfTheNewProgramJob>();

    let chain = async {
        let sent = of_the_new_program::enqueue(&old, CHAIN)
            .await
            .expect("enqueued");
        asks_again(&asks, 5).await;
        let waiting = job(&new, sent.id).await;
        assert_eq!((waiting.state, waiting.attempts), (JobState::Queued, 0));
        let ended = finals(&[&new], CHAIN as usize + 1);
        new_worker.run_until(ended).await.expect("ends well");
        stop.add_permits(1);
    };
    beside(old_worker, chain).await;

    let counts = new.counts().await.expect("it answers");
    assert_eq!((counts.done, counts.total()), (u64::from(CHAIN) + 1, 11));
}

async fn o_095_a_job_that_nobody_knows_waits_and_is_counted(world: &World) {
    let (queue, asks) = world.open_faulty().await;
    let sent = of_the_new_program::enqueue(&queue, 0)
        .await
        .expect("enqueued");
    let old = worker(&queue).job::<OfTheOldProgramJob>();

    old.run_until(asks_again(&asks, 5))
        .await
        .expect("ends well");

    let waiting = job(&queue, sent.id).await;
    assert_eq!((waiting.state, waiting.attempts), (JobState::Queued, 0));
    let served = [QueueName::default_queue()];
    let known = [(JobType::new("of_the_old_program").expect("a name"), 1)];
    let unread = queue.store().unread(&served, &known).await;
    let unread = unread.expect("it answers");
    assert_eq!((unread.len(), unread[0].jobs), (1, 1));
    assert_eq!(unread[0].job_type.as_str(), "of_the_new_program");
    let new = worker(&queue).job::<OfTheNewProgramJob>();
    new.run_until(finals(&[&queue], 1))
        .await
        .expect("ends well");
    assert_eq!(job(&queue, sent.id).await.state, JobState::Done);
}

#[derive(Serialize, Deserialize)]
enum FormerColor {
    Plain,
}

#[derive(Serialize, Deserialize)]
enum Color {
    Plain { shade: u8 },
}

#[job(name = "paints")]
async fn paints_formerly(color: FormerColor) {
    let FormerColor::Plain = color;
}

#[job(name = "paints", retries = 9)]
async fn paints(color: Color) {
    let Color::Plain { shade } = color;
    let _ = shade;
}

/// Reads both shapes.
#[job(name = "paints")]
async fn paints_either(color: serde_json::Value) {
    assert!(
        color == "Plain" || color["Plain"]["shade"].is_u64(),
        "{color}"
    );
}

async fn o_096_a_payload_of_an_older_shape_is_kept_and_runs_after_a_fix(world: &World) {
    let queue = world.open().await;
    let old = paints_formerly::enqueue(&queue, FormerColor::Plain).await;
    let old = old.expect("enqueued").id;
    let new = paints::enqueue(&queue, Color::Plain { shade: 7 }).await;
    let new = new.expect("enqueued").id;

    let ended = finals(&[&queue], 2);
    worker(&queue)
        .job::<PaintsJob>()
        .run_until(ended)
        .await
        .expect("it lives");

    let dead = job(&queue, old).await;
    assert_eq!(
        (dead.state, dead.dead_reason),
        (JobState::DeadLetter, Some(DeadReason::Undecodable))
    );
    assert_eq!(dead.payload, r#"{"color":"Plain"}"#);
    let error = dead.last_error.expect("a reason");
    assert!(error.contains("$.color"), "{error}");
    assert_eq!(job(&queue, new).await.state, JobState::Done);

    queue.replay(old).await.expect("a dead letter");
    let ended = finals(&[&queue], 1);
    let fixed = worker(&queue).job::<PaintsEitherJob>();
    fixed.run_until(ended).await.expect("ends well");
    assert_eq!(job(&queue, old).await.state, JobState::Done);
}

#[job(retries = 0)]
async fn of_kind_a() {}

#[job(retries = 0)]
async fn of_kind_b() {}

#[job(retries = 0)]
async fn of_kind_c() {}

/// A hundred jobs of each type; the fleets know a and b, b and c, c alone.
async fn o_097_workers_of_overlapping_job_types_run_what_they_know(world: &World) {
    const EACH: usize = 100;
    let queues = [world.open().await, world.open().await, world.open().await];
    let [ab, bc, c] = &queues;
    let mut sent = Vec::new();
    sent.extend(enqueued(ab, (0..EACH).map(|_| OfKindAJob {}), &["ab"]).await);
    sent.extend(enqueued(bc, (0..EACH).map(|_| OfKindBJob {}), &["ab", "bc"]).await);
    sent.extend(enqueued(c, (0..EACH).map(|_| OfKindCJob {}), &["bc", "c"]).await);
    let (stop, ended) = (Semaphore::new(0), finals(&[ab, bc, c], 3 * EACH));
    let run = |worker: WorkerBuilder, name: &str| {
        let stopped = async { stop.acquire().await.expect("never closed").forget() };
        worker.name(name).concurrency(5).run_until(stopped)
    };
    let fleets = [
        run(worker(ab).job::<OfKindAJob>().job::<OfKindBJob>(), "ab"),
        run(worker(bc).job::<OfKindBJob>().job::<OfKindCJob>(), "bc"),
        run(worker(c).job::<OfKindCJob>(), "c"),
    ];
    let watch = async {
        ended.await;
        stop.add_permits(3);
    };
    beside(try_join_all(fleets), watch).await;

    for (id, fleets) in sent {
        let job = job(ab, id).await;
        assert_eq!((job.state, job.attempts), (JobState::Done, 1));
        let attempts = ab.attempts(id).await.expect("it answers");
        let worker = attempts[0].worker.as_str();
        let fleet = worker.split('@').next().expect("a name");
        assert!(fleets.contains(&fleet), "{} ran on {worker}", job.job_type);
    }
}

/// Enqueues jobs, and says with each which fleets know it.
async fn enqueued<'f, J: Job>(
    queue: &Queue,
    jobs: impl Iterator<Item = J>,
    fleets: &'f [&'f str],
) -> Vec<(queue_runtime::JobId, BTreeSet<&'f str>)> {
    let sent = queue.enqueue_all(jobs).await.expect("enqueued");
    let ids = sent.into_iter().map(|sent| sent.expect("no conflict").id);
    ids.map(|id| (id, fleets.iter().copied().collect()))
        .collect()
}
