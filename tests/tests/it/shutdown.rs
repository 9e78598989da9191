//! Stopping: what runs may finish, what does not is handed back, and nothing is lost.

use std::time::Duration;

use queue_runtime::job::OutcomeKind;
use queue_runtime::seam::Seam;
use queue_runtime::{Data, JobContext, JobState, Worker, WorkerError, job};
use queue_testkit::Verb;
use tokio::sync::Notify;

use crate::logs::{Line, Log};
use crate::world::World;

#[job(timeout = "none", retries = 0)]
async fn finishes_when_told(started: Data<Notify>, go: Data<Go>) {
    started.notify_one();
    go.0.notified().await;
}

struct Go(Notify);

#[tokio::test]
async fn a_running_handler_may_finish_within_the_grace() {
    let world = World::new();
    let (started, go) = (Data::new(Notify::new()), Data::new(Go(Notify::new())));
    let sent = finishes_when_told::enqueue(&world.queue)
        .await
        .expect("enqueued");
    let worker = Worker::builder(&world.queue)
        .job::<FinishesWhenToldJob>()
        .shared(started.clone())
        .shared(go.clone())
        .build()
        .expect("it fits");

    let stop = async {
        started.notified().await;
        // The shutdown begins now; the handler ends after it.
        go.0.notify_one();
    };
    worker.run_until(stop).await.expect("ends well");

    let job = world.job(sent.id).await;
    assert_eq!((job.state, job.attempts), (JobState::Done, 1));
}

#[job(timeout = "none", retries = 0)]
async fn never_finishes(ctx: JobContext, stopped: Data<Stopped>) {
    let _told = Told(stopped);
    ctx.stopped().await;
    std::future::pending::<()>().await;
}

struct Stopped(std::sync::atomic::AtomicU32);

/// Counts that a handler's future was dropped.
struct Told(Data<Stopped>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn what_does_not_finish_is_handed_back_at_no_cost() {
    let world = World::new();
    let stopped = Data::new(Stopped(0.into()));
    let sent = never_finishes::enqueue(&world.queue)
        .await
        .expect("enqueued");
    let begun = std::cell::Cell::new(Duration::ZERO);

    let worker = Worker::builder(&world.queue)
        .job::<NeverFinishesJob>()
        .shared(stopped.clone())
        .grace(Duration::from_secs(30));
    let started = async || {
        begun.set(world.seam.elapsed());
        world.job(sent.id).await.state == JobState::Processing
    };
    world.run_until(worker, started).await.expect("ends well");

    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.crashes),
        (JobState::Queued, 0, 0)
    );
    assert_eq!(job.last_outcome, Some(OutcomeKind::HandedBack));
    assert_eq!(
        stopped.0.load(std::sync::atomic::Ordering::Relaxed),
        1,
        "its future was dropped"
    );
    let took = world.seam.elapsed() - begun.get();
    assert!(
        took <= Duration::from_secs(30),
        "one budget for everything, not {took:?}"
    );
}

#[tokio::test]
async fn jobs_that_wait_for_a_slot_are_handed_back_at_once() {
    let world = World::new();
    let stopped = Data::new(Stopped(0.into()));
    for _ in 0..5 {
        never_finishes::enqueue(&world.queue)
            .await
            .expect("enqueued");
    }
    let worker = Worker::builder(&world.queue)
        .job::<NeverFinishesJob>()
        .shared(stopped.clone())
        .concurrency(2);
    let started = async || world.queue.counts().await.expect("it answers").processing > 0;
    world.run_until(worker, started).await.expect("ends well");

    let counts = world.queue.counts().await.expect("the store answers");
    assert_eq!((counts.queued, counts.processing), (5, 0));
}

#[job]
async fn quick(ended: Data<Stopped>) {
    ended.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

#[tokio::test]
async fn jobs_that_were_claimed_ahead_of_a_slot_are_handed_back_at_no_cost() {
    let world = World::new();
    let ended = Data::new(Stopped(0.into()));
    let jobs = (0..9_000).map(|_| QuickJob {});
    world.queue.enqueue_all(jobs).await.expect("enqueued");
    let worker = Worker::builder(&world.queue)
        .job::<QuickJob>()
        .shared(ended.clone())
        .concurrency(2)
        .build()
        .expect("it fits");
    let stop = Notify::new();
    let run = worker.run_until(stop.notified());
    tokio::pin!(run);
    // The clock creeps, so that the rate is high and the worker claims ahead; it is stopped in
    // the middle of that.
    let mut most = 0;
    loop {
        tokio::select! {
            biased;
            done = &mut run => {
                done.expect("ends well");
                break;
            }
            () = tokio::task::yield_now() => {}
        }
        world.seam.advance(Duration::from_micros(100));
        let counts = world.queue.counts().await.expect("the store answers");
        most = most.max(counts.processing);
        if counts.processing > 50 {
            stop.notify_one();
        }
        assert!(
            counts.queued > 0,
            "it was never ahead: at most {most} at once"
        );
    }

    let counts = world.queue.counts().await.expect("the store answers");
    assert_eq!(counts.processing, 0);
    assert_eq!(
        counts.done,
        u64::from(ended.0.load(std::sync::atomic::Ordering::Relaxed))
    );
    let store = world.queue.store();
    assert_eq!(store.expired(9).await.expect("the store answers"), []);
}

#[tokio::test]
async fn a_worker_may_run_until_nothing_it_knows_is_left() {
    let world = World::new();
    let ended = Data::new(Stopped(0.into()));
    for _ in 0..5 {
        quick::enqueue(&world.queue).await.expect("enqueued");
    }
    let unknown = never_finishes::enqueue(&world.queue)
        .await
        .expect("enqueued");

    let worker = Worker::builder(&world.queue)
        .job::<QuickJob>()
        .shared(ended.clone());
    worker.run_until_empty().await.expect("ends well");

    assert_eq!(ended.0.load(std::sync::atomic::Ordering::Relaxed), 5);
    assert_eq!(world.job(unknown.id).await.state, JobState::Queued);
}

#[tokio::test]
async fn without_any_grace_jobs_are_still_handed_back() {
    for grace in [Duration::ZERO, Duration::from_millis(1)] {
        let world = World::new();
        for _ in 0..10 {
            never_finishes::enqueue(&world.queue)
                .await
                .expect("enqueued");
        }
        let worker = Worker::builder(&world.queue)
            .job::<NeverFinishesJob>()
            .data(Stopped(0.into()))
            .grace(grace);
        let started = async || world.queue.counts().await.expect("it answers").processing == 10;
        world.run_until(worker, started).await.expect("ends well");

        let counts = world.queue.counts().await.expect("the store answers");
        assert_eq!((counts.queued, counts.processing), (10, 0), "{grace:?}");
    }
}

/// The lines of a worker that was stopped while the store did not answer a verb any more.
async fn warned_of(verb: Verb) -> Vec<Line> {
    let world = World::new();
    let (log, _guard) = Log::start();
    for _ in 0..2 {
        quick::enqueue(&world.queue).await.expect("enqueued");
    }
    world.faults.hold(verb);
    let worker = Worker::builder(&world.queue)
        .job::<QuickJob>()
        .data(Stopped(0.into()));
    let asked = async || world.faults.calls(verb) > 0;
    world.run_until(worker, asked).await.expect("ends well");
    let mut lines = log.lines();
    lines.retain(|line| line.message().ends_with("run again"));
    lines
}

#[tokio::test]
async fn results_that_are_on_their_way_at_the_end_of_the_grace_are_counted() {
    let [line] = &warned_of(Verb::Settle).await[..] else {
        panic!("one line tells of it");
    };
    assert!(line.message().contains("the last results"), "{line:?}");
    assert_eq!(line.fields["results"], "2");
}

#[tokio::test]
async fn a_claim_without_an_answer_at_the_end_of_the_grace_is_no_lost_result() {
    let [line] = &warned_of(Verb::Claim).await[..] else {
        panic!("one line tells of it");
    };
    assert!(line.message().contains("the last claim"), "{line:?}");
}

#[tokio::test]
async fn a_worker_that_is_dropped_stops_its_handlers() {
    let world = World::new();
    let stopped = Data::new(Stopped(0.into()));
    never_finishes::enqueue(&world.queue)
        .await
        .expect("enqueued");
    let worker = Worker::builder(&world.queue)
        .job::<NeverFinishesJob>()
        .shared(stopped.clone());
    let dropped = Data::new(Notify::new());
    let started = async || {
        if world.queue.counts().await.expect("it answers").processing == 1 {
            dropped.notify_one();
        }
        false
    };
    tokio::select! {
        _ = world.run_until(worker, started) => unreachable!("nobody asks it to end"),
        () = dropped.notified() => {}
    }
    while stopped.0.load(std::sync::atomic::Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
}

#[job(timeout = "none", retries = 0)]
async fn ignores_everything(gate: Data<Blocker>) {
    let started = gate
        .0
        .lock()
        .expect("one at a time")
        .take()
        .expect("runs once");
    started.send(()).expect("the test listens");
    gate.1
        .lock()
        .expect("one at a time")
        .recv()
        .expect("the test lets go");
}

struct Blocker(
    std::sync::Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
    std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_cannot_be_stopped_is_reported_and_not_waited_for() {
    let queue = queue_runtime::Queue::in_memory();
    let (started, is_started) = tokio::sync::oneshot::channel();
    let (let_go, gate) = std::sync::mpsc::channel();
    ignores_everything::enqueue(&queue).await.expect("enqueued");
    let worker = Worker::builder(&queue)
        .job::<IgnoresEverythingJob>()
        .data(Blocker(Some(started).into(), gate.into()))
        .grace(Duration::from_millis(50));

    let ended = worker
        .run_until(async { is_started.await.expect("it starts") })
        .await;

    assert!(
        matches!(ended, Err(WorkerError::Stuck { running: 1, .. })),
        "{ended:?}"
    );
    let_go.send(()).expect("the handler waits");
}
