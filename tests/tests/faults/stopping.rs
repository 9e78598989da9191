//! Workers that are told to stop: what has ended is recorded, and what has not is handed back at
//! once, at no cost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use queue_runtime::job::OutcomeKind;
use queue_runtime::{Data, JobState, Worker, job};
use tokio::sync::Semaphore;

use crate::child::{Child, HasOneAttemptJob, has_one_attempt, worker};
use crate::world::{World, eventually, finals, job};

on! { memory:
    real {
        o_062_forty_queues_do_not_use_up_one_grace_each
        o_063_results_at_the_moment_of_the_stop_are_not_lost
    }
}

on! { sqlite:
    real {
        o_062_forty_queues_do_not_use_up_one_grace_each
        o_063_results_at_the_moment_of_the_stop_are_not_lost
        o_064_a_keyed_job_that_is_stopped_does_not_keep_its_lease
    }
}

on! { postgres:
    real {
        o_062_forty_queues_do_not_use_up_one_grace_each
        o_063_results_at_the_moment_of_the_stop_are_not_lost
        o_064_a_keyed_job_that_is_stopped_does_not_keep_its_lease
    }
}

#[job(timeout = "none")]
async fn outlasts_the_grace(starts: Data<AtomicUsize>, go: Data<Semaphore>) {
    starts.fetch_add(1, Ordering::SeqCst);
    go.acquire().await.expect("never closed").forget();
}

/// Three jobs in each queue, and a slot for a third of them. Half of those end after the signal and
/// free their slots, which nobody may fill any more.
async fn o_062_forty_queues_do_not_use_up_one_grace_each(world: &World) {
    const QUEUES: usize = 40;
    // A second of it is for handing back.
    let grace = Duration::from_secs(2);
    let queue = world.open().await;
    let names: Vec<_> = (0..QUEUES).map(|n| format!("queue-{n}")).collect();
    let mut ids = Vec::new();
    for name in names.iter().cycle().take(3 * QUEUES) {
        let sent = outlasts_the_grace::enqueue(&queue).queue(name).await;
        ids.push(sent.expect("enqueued").id);
    }
    let (starts, go) = (Data::new(AtomicUsize::new(0)), Data::new(Semaphore::new(0)));
    let worker = Worker::builder(&queue)
        .job::<OutlastsTheGraceJob>()
        .queues(names)
        .shared(starts.clone())
        .shared(go.clone())
        .concurrency(QUEUES)
        .grace(grace);

    let mut told = Instant::now();
    let watch = async {
        eventually(async || starts.load(Ordering::SeqCst) == QUEUES).await;
        told = Instant::now();
        go.add_permits(QUEUES / 2);
    };
    worker.run_until(watch).await.expect("ends well");

    let took = told.elapsed();
    assert!(took < grace * 10, "one grace for everything, not {took:?}");
    assert_eq!(starts.load(Ordering::SeqCst), QUEUES, "none was started");
    let counts = queue.counts().await.expect("it answers");
    assert_eq!((counts.queued, counts.done, counts.total()), (100, 20, 120));
    let mut claimed = 0;
    for id in ids {
        claimed += usize::from(job(&queue, id).await.lock_token.is_some());
    }
    assert_eq!(claimed, QUEUES, "none was claimed after the signal");
}

#[job(timeout = "none", retries = 9)]
async fn ends_at_the_stop(go: Data<Semaphore>, runs: Data<AtomicUsize>) {
    runs.fetch_add(1, Ordering::SeqCst);
    go.acquire().await.expect("never closed").forget();
}

async fn o_063_results_at_the_moment_of_the_stop_are_not_lost(world: &World) {
    const JOBS: usize = 200;
    let queue = world.open().await;
    let sent = queue
        .enqueue_all((0..JOBS).map(|_| EndsAtTheStopJob {}))
        .await;
    assert_eq!(sent.expect("enqueued").len(), JOBS);
    let (go, runs) = (Data::new(Semaphore::new(0)), Data::new(AtomicUsize::new(0)));
    let worker = || {
        let worker = Worker::builder(&queue).job::<EndsAtTheStopJob>();
        worker.shared(go.clone()).shared(runs.clone())
    };

    // All of them end while the worker is told to stop.
    let watch = async {
        eventually(async || runs.load(Ordering::SeqCst) == JOBS).await;
        go.add_permits(JOBS);
    };
    let first = worker().concurrency(JOBS).run_until(watch).await;
    first.expect("ends well");

    let counts = queue.counts().await.expect("it answers");
    assert_eq!((counts.done, counts.total()), (200, 200));
    worker().run_until_empty().await.expect("ends well");
    assert_eq!(runs.load(Ordering::SeqCst), JOBS, "none ran again");
}

async fn o_064_a_keyed_job_that_is_stopped_does_not_keep_its_lease(world: &World) {
    let queue = world.open().await;
    let enqueue = async || {
        let sent = has_one_attempt::enqueue(&queue).dedupe_key("k").await;
        sent.expect("answered")
    };
    let sent = enqueue().await;
    let mut deployed = Child::start("holds", world);
    deployed.says("running").await;

    assert!(deployed.stop().await.success());

    let waits = job(&queue, sent.id).await;
    let standing = (waits.state, waits.attempts, waits.crashes);
    assert_eq!(standing, (JobState::Queued, 0, 0));
    assert_eq!((waits.locked_by, waits.locked_until), (None, None));
    let attempts = queue.attempts(sent.id).await.expect("it answers");
    assert_eq!(attempts[0].outcome, Some(OutcomeKind::HandedBack));
    let handed_back = attempts[0].finished_at.expect("it has ended");
    assert!(waits.run_at <= handed_back, "it is due at once");
    let meanwhile = enqueue().await;
    assert_eq!((meanwhile.id, meanwhile.duplicate), (sent.id, true));
    // It may be tried once, and that is still to come.
    let next = worker(&queue).job::<HasOneAttemptJob>().data(false);
    next.run_until(finals(&[&queue], 1))
        .await
        .expect("ends well");
    let ended = job(&queue, sent.id).await;
    assert_eq!((ended.state, ended.attempts), (JobState::Done, 1));
    assert!(!enqueue().await.duplicate, "its key is free");
}
