//! What stays behind in a process and in a store, however many jobs and attempts there were.

use std::sync::atomic::{AtomicU64, Ordering};

use queue_runtime::job::{Change, NewJob, Outcome};
use queue_runtime::rules::error_text::ERROR_BYTES_MAX;
use queue_runtime::rules::transition::{RetryPolicy, Standing, settle};
use queue_runtime::{Data, JobState, Queue, Worker, job};

use crate::world::{Subject, World, eventually};

on! { memory:
    real { o_086_jobs_that_have_ended_do_not_leave_tasks_behind }
    by_hand { o_087_a_thousand_failures_do_not_make_the_row_grow }
}

on! { sqlite:
    real { o_086_jobs_that_have_ended_do_not_leave_tasks_behind }
    by_hand { o_087_a_thousand_failures_do_not_make_the_row_grow }
}

on! { postgres:
    real { o_086_jobs_that_have_ended_do_not_leave_tasks_behind }
    by_hand { o_087_a_thousand_failures_do_not_make_the_row_grow }
}

#[job]
async fn does_nothing(runs: Data<AtomicU64>) {
    runs.fetch_add(1, Ordering::SeqCst);
}

/// A task that has settled its job needs a moment to end; more than these few are left behind.
const ON_THEIR_WAY: usize = 5;

async fn o_086_jobs_that_have_ended_do_not_leave_tasks_behind(world: &World) {
    let queue = world.open().await;
    let runs = Data::new(AtomicU64::new(0));
    let worker = Worker::builder(&queue)
        .job::<DoesNothingJob>()
        .shared(runs.clone());
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };

    let watch = async {
        // What is there only once, such as connections, is there after these.
        run_through(&queue, 500, 500).await;
        let before = tasks();
        run_through(&queue, 5_000, 5_500).await;
        eventually(async || tasks() <= before + ON_THEIR_WAY).await;
    };
    worker.run_until(watch).await.expect("ends well");
    assert_eq!(runs.load(Ordering::SeqCst), 5_500);
}

/// Enqueues jobs, and waits until so many are done in all.
async fn run_through(queue: &Queue, jobs: usize, done: u64) {
    let sent = queue
        .enqueue_all((0..jobs).map(|_| DoesNothingJob {}))
        .await;
    assert_eq!(sent.expect("enqueued").len(), jobs);
    eventually(async || queue.counts().await.expect("it answers").done == done).await;
}

/// Each with twice as much to say as is kept.
async fn o_087_a_thousand_failures_do_not_make_the_row_grow(s: &Subject) {
    const FAILURES: u32 = 1_000;
    let policy = RetryPolicy::default();
    let endless = NewJob {
        max_attempts: FAILURES + 1,
        ..s.job()
    };
    s.add(&endless).await;
    for failure in 1..=FAILURES {
        let run = s.take().await;
        let error = format!("failure {failure}: {}", "é".repeat(ERROR_BYTES_MAX));
        let standing = Standing::from(&run);
        let settlement = settle(&standing, &Outcome::Retry { error }, &policy, s.now(), 0);
        let Change::Queued { delay } = settlement.change else {
            panic!("an attempt is left: {settlement:?}")
        };
        s.apply(settlement).await;
        s.advance(delay);
    }

    let job = s.record(endless.id).await;
    assert_eq!((job.state, job.attempts), (JobState::Queued, FAILURES));
    assert_eq!(job.payload, endless.payload);
    let last = job.last_error.expect("a reason");
    assert!(last.starts_with("failure 1000: é") && last.len() <= ERROR_BYTES_MAX);
    let history = s.attempts(endless.id).await;
    assert_eq!(history.len(), FAILURES as usize, "one row each");
    for (attempt, failure) in history.iter().zip(1..) {
        let error = attempt.error.as_deref().expect("a reason");
        assert!(error.starts_with(&format!("failure {failure}: é")));
        assert!(error.len() <= ERROR_BYTES_MAX);
    }
}
