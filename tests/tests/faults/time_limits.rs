//! Handlers that go on for too long: one that is stopped is gone, and one that may go on takes one
//! slot.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use queue_runtime::job::OutcomeKind;
use queue_runtime::{Data, JobContext, JobState, Worker, job};

use crate::world::{World, eventually, finals, job};

on! { memory:
    real {
        o_058_a_second_attempt_does_not_overlap_the_one_that_timed_out
        o_060_a_job_that_never_ends_does_not_stop_the_others
    }
}

on! { sqlite:
    real {
        o_058_a_second_attempt_does_not_overlap_the_one_that_timed_out
        o_060_a_job_that_never_ends_does_not_stop_the_others
    }
}

on! { postgres:
    real {
        o_058_a_second_attempt_does_not_overlap_the_one_that_timed_out
        o_060_a_job_that_never_ends_does_not_stop_the_others
    }
}

/// What the attempts of a job see of each other.
#[derive(Default)]
struct Seen {
    inside: AtomicUsize,
    most: AtomicUsize,
    told: AtomicUsize,
}

/// One attempt's handler, for as long as its future is there.
struct Inside(Data<Seen>);

impl Inside {
    fn enter(seen: Data<Seen>) -> Self {
        let inside = seen.inside.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most.fetch_max(inside, Ordering::SeqCst);
        Self(seen)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts work beside itself, which listens for the end of its attempt.
#[job(timeout = "1s", retries = 1, backoff = "fixed(1ms)")]
async fn takes_too_long(ctx: JobContext, seen: Data<Seen>) {
    let _inside = Inside::enter(seen.clone());
    let attempt = ctx.attempt();
    tokio::spawn(async move {
        ctx.stopped().await;
        seen.told.fetch_add(1, Ordering::SeqCst);
    });
    if attempt == 1 {
        std::future::pending::<()>().await;
    }
}

async fn o_058_a_second_attempt_does_not_overlap_the_one_that_timed_out(world: &World) {
    let queue = world.open().await;
    let sent = takes_too_long::enqueue(&queue).await.expect("enqueued");
    let seen = Data::new(Seen::default());

    let worker = Worker::builder(&queue)
        .job::<TakesTooLongJob>()
        .shared(seen.clone())
        .poll(Duration::from_millis(10));
    worker
        .run_until(finals(&[&queue], 1))
        .await
        .expect("ends well");

    let ended = job(&queue, sent.id).await;
    assert_eq!((ended.state, ended.attempts), (JobState::Done, 2));
    let attempts = queue.attempts(sent.id).await.expect("it answers");
    assert_eq!(attempts[0].outcome, Some(OutcomeKind::TimedOut));
    assert_eq!(seen.most.load(Ordering::SeqCst), 1);
    assert_eq!(seen.inside.load(Ordering::SeqCst), 0);
    // What each attempt had started beside itself has heard of its end.
    eventually(async || seen.told.load(Ordering::SeqCst) == 2).await;
}

#[job(timeout = "none")]
async fn never_ends() {
    std::future::pending::<()>().await;
}

#[job]
async fn is_short(runs: Data<AtomicU64>) {
    runs.fetch_add(1, Ordering::SeqCst);
}

async fn o_060_a_job_that_never_ends_does_not_stop_the_others(world: &World) {
    const OTHERS: usize = 500;
    let queue = world.open().await;
    let endless = never_ends::enqueue(&queue).priority(1).await;
    let endless = endless.expect("enqueued").id;
    let sent = queue.enqueue_all((0..OTHERS).map(|_| IsShortJob {})).await;
    assert_eq!(sent.expect("enqueued").len(), OTHERS);
    let runs = Data::new(AtomicU64::new(0));

    let worker = Worker::builder(&queue)
        .job::<NeverEndsJob>()
        .job::<IsShortJob>()
        .shared(runs.clone())
        .concurrency(10)
        .grace(Duration::ZERO);
    worker
        .run_until(finals(&[&queue], OTHERS))
        .await
        .expect("ends well");

    assert_eq!(runs.load(Ordering::SeqCst), OTHERS as u64);
    // It ran all the time beside them, and was handed back when the worker was stopped.
    let endless = job(&queue, endless).await;
    assert_eq!(endless.last_outcome, Some(OutcomeKind::HandedBack));
    assert_eq!((endless.state, endless.attempts), (JobState::Queued, 0));
}
