//! A change that arrives while the job of its key runs: one more run sees it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use queue_runtime::{Data, JobState, Queue, Worker, WorkerBuilder, job};
use queue_testkit::faulty::Faulty;
use tokio::sync::{Notify, Semaphore};

use crate::world::{World, asks_again, beside, finals, job};

on! { memory:
    real {
        o_039_a_second_version_enqueued_while_the_first_runs_is_run_after_it
        o_040_five_enqueues_while_the_job_runs_are_one_run_with_the_newest_payload
    }
}

on! { sqlite:
    real {
        o_039_a_second_version_enqueued_while_the_first_runs_is_run_after_it
        o_040_five_enqueues_while_the_job_runs_are_one_run_with_the_newest_payload
    }
}

on! { postgres:
    real {
        o_039_a_second_version_enqueued_while_the_first_runs_is_run_after_it
        o_040_five_enqueues_while_the_job_runs_are_one_run_with_the_newest_payload
    }
}

/// The versions that were seen, in order.
type Seen = Data<Mutex<Vec<u32>>>;

#[job(dedupe = "page", on_duplicate = "rerun", retries = 0)]
async fn reindexes(page: u64, version: u32, running: Data<Running>, #[inject] seen: Seen) {
    let _ = page;
    seen.lock().expect("no panic while noting").push(version);
    running.holds().await;
}

#[job(dedupe = "page", on_duplicate = "replace", retries = 0)]
async fn renders(page: u64, version: u32, running: Data<Running>, #[inject] seen: Seen) {
    let _ = page;
    seen.lock().expect("no panic while noting").push(version);
    running.holds().await;
}

/// Tells that a handler runs, and holds it until it is let go; one runs at a time.
struct Running {
    now: AtomicUsize,
    started: Notify,
    go: Semaphore,
}

impl Running {
    async fn holds(&self) {
        assert_eq!(self.now.fetch_add(1, Ordering::SeqCst), 0, "two at a time");
        self.started.notify_one();
        self.go.acquire().await.expect("never closed").forget();
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs two jobs; while the first of them runs, `meanwhile` enqueues the second.
async fn two_runs(
    (queue, faults): &(Queue, Faulty),
    worker: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    meanwhile: impl AsyncFnOnce(),
) -> Vec<u32> {
    let running = Data::new(Running {
        now: AtomicUsize::new(0),
        started: Notify::new(),
        go: Semaphore::new(0),
    });
    let seen = Seen::new(Mutex::default());
    let builder = Worker::builder(queue).poll(Duration::from_millis(10));
    let worker = worker(builder.shared(running.clone()).shared(seen.clone()));
    let enqueue = async {
        running.started.notified().await;
        meanwhile().await;
        // Time enough to take what may not be taken yet.
        asks_again(faults, 3).await;
        running.go.add_permits(2);
    };
    beside(worker.run_until(finals(&[queue], 2)), enqueue).await;
    seen.lock().expect("no panic while noting").clone()
}

async fn o_039_a_second_version_enqueued_while_the_first_runs_is_run_after_it(world: &World) {
    let (queue, producer) = (world.open_faulty().await, world.open().await);
    let first = reindexes::enqueue(&producer, 7, 1).await.expect("enqueued");

    let seen = two_runs(
        &queue,
        |worker| worker.job::<ReindexesJob>(),
        async || {
            let second = reindexes::enqueue(&producer, 7, 2).await.expect("enqueued");
            assert!(!second.duplicate && second.id != first.id);
        },
    )
    .await;

    assert_eq!(seen, [1, 2]);
    let counts = producer.counts().await.expect("it answers");
    assert_eq!((counts.done, counts.total()), (2, 2));
}

async fn o_040_five_enqueues_while_the_job_runs_are_one_run_with_the_newest_payload(world: &World) {
    let (queue, producer) = (world.open_faulty().await, world.open().await);
    let first = renders::enqueue(&producer, 7, 1).await.expect("enqueued");

    let seen = two_runs(
        &queue,
        |worker| worker.job::<RendersJob>(),
        async || {
            let behind = renders::enqueue(&producer, 7, 2).await.expect("enqueued");
            assert!(!behind.duplicate && behind.id != first.id);
            for version in 3..=6 {
                let sent = renders::enqueue(&producer, 7, version).await;
                let sent = sent.expect("answered");
                assert_eq!((sent.id, sent.duplicate), (behind.id, true));
            }
        },
    )
    .await;

    assert_eq!(seen, [1, 6]);
    assert_eq!(job(&producer, first.id).await.state, JobState::Done);
    let counts = producer.counts().await.expect("it answers");
    assert_eq!((counts.done, counts.total()), (2, 2));
}
