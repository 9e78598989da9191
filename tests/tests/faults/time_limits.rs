//! Handlers that go on for too long: one that is stopped is gone, and one that may go on takes one
//! slot.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use queue_runtime::job::OutcomeKind;
use queue_runtime::{Data, JobContext, JobState, Worker, WorkerError, job};

use crate::heartbeats::Gate;
use crate::world::{World, eventually, finals, job};

on! { memory:
    real {
        o_058_a_second_attempt_does_not_overlap_the_one_that_timed_out
        o_059_handlers_that_block_beyond_their_limit_do_not_keep_their_jobs
        o_060_a_job_that_never_ends_does_not_stop_the_others
    }
}

on! { sqlite:
    real {
        o_058_a_second_attempt_does_not_overlap_the_one_that_timed_out
        o_059_handlers_that_block_beyond_their_limit_do_not_keep_their_jobs
        o_060_a_job_that_never_ends_does_not_stop_the_others
    }
}

on! { postgres:
    real {
        o_058_a_second_attempt_does_not_overlap_the_one_that_timed_out
        o_059_handlers_that_block_beyond_their_limit_do_not_keep_their_jobs
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

#[job(timeout = "100ms", retries = 0)]
async fn ignores_its_limit(gate: Data<Gate>, runs: Data<AtomicU64>) {
    runs.fetch_add(1, Ordering::SeqCst);
    gate.pass();
}

/// Four slots, four jobs that block a thread each, and another worker beside theirs.
async fn o_059_handlers_that_block_beyond_their_limit_do_not_keep_their_jobs(world: &World) {
    const BLOCKED: usize = 4;
    let lease = Duration::from_secs(1);
    let (queue, watcher) = (world.open().await, world.open().await);
    let (gate, runs) = (Data::new(Gate::default()), Data::new(AtomicU64::new(0)));
    // Either worker may be the one that finds the lost leases.
    let ended = finals(&[&queue, &watcher], BLOCKED + 1);
    let jobs = (0..BLOCKED).map(|_| IgnoresItsLimitJob {});
    let sent = queue.enqueue_all(jobs).await.expect("enqueued");
    let worker = |queue| {
        let worker = Worker::builder(queue).shared(runs.clone()).lease(lease);
        worker.heartbeat(lease / 10).rescue_every(lease / 10)
    };
    let blocked = worker(&queue)
        .job::<IgnoresItsLimitJob>()
        .shared(gate.clone())
        .concurrency(BLOCKED)
        .grace(Duration::from_millis(100));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (tell, is_told) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(move || {
        // One thread for each, and one for the worker.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(BLOCKED + 1)
            .enable_all()
            .build()
            .expect("the system gives a test its threads");
        let ended = runtime.block_on(blocked.run_until(async {
            stopped.await.expect("the scenario says when");
        }));
        tell.send(ended).expect("the scenario waits");
    });
    eventually(async || runs.load(Ordering::SeqCst) == BLOCKED as u64).await;

    // Their worker has no slot left. Their jobs end without them, and another runs what is new.
    let fresh = is_short::enqueue(&watcher).await.expect("enqueued").id;
    let peer = worker(&watcher).job::<IsShortJob>();
    peer.run_until(ended).await.expect("ends well");

    assert_eq!(job(&watcher, fresh).await.state, JobState::Done);
    for sent in sent {
        let job = job(&watcher, sent.expect("no conflict").id).await;
        assert_eq!((job.state, job.attempts), (JobState::DeadLetter, 1));
        assert_eq!(job.last_outcome, Some(OutcomeKind::Lost));
    }
    // Told to stop, it says how many it cannot stop, and does not wait for them.
    stop.send(()).expect("the worker runs");
    let ended = is_told.await.expect("it ends");
    let running = match ended {
        Err(WorkerError::Stuck { running, .. }) => running,
        other => panic!("{other:?}"),
    };
    assert_eq!(running, BLOCKED);
    gate.open();
    let joined = tokio::task::spawn_blocking(|| thread.join()).await;
    joined.expect("joined").expect("no panic");
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
