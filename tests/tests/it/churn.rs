//! Producers, operators and workers on one file, all at once: each job ends once, and no key is
//! left behind.

use std::collections::BTreeSet;

use futures_util::future::{join_all, try_join};
use queue_runtime::{EnqueueError, Enqueued, JobError, JobId, JobState, Queue, Worker, job};
use tokio::sync::watch;

use crate::world::File;

/// What an attempt comes to hangs on its arguments, so a repeat comes to the same.
async fn comes_to(sum: i64) -> Result<(), JobError> {
    for _ in 0..sum % 20 {
        tokio::task::yield_now().await;
    }
    match sum % 5 {
        0 => Err(JobError::retry("for now")),
        1 => Err(JobError::permanent("for good")),
        2 => Err(JobError::cancel("called off")),
        _ => Ok(()),
    }
}

#[job(
    dedupe = "key",
    on_duplicate = "rerun",
    retries = 2,
    backoff = "fixed(1ms)"
)]
async fn runs_again(key: i64, value: i64) -> Result<(), JobError> {
    comes_to(key + value).await
}

#[job(
    dedupe = "key",
    on_duplicate = "replace",
    retries = 2,
    backoff = "fixed(1ms)"
)]
async fn is_replaced(key: i64, value: i64) -> Result<(), JobError> {
    comes_to(key + value).await
}

#[job(
    dedupe = "key",
    dedupe_until = "started",
    retries = 2,
    backoff = "fixed(1ms)"
)]
async fn is_free_once_started(key: i64, value: i64) -> Result<(), JobError> {
    comes_to(key + value).await
}

/// Enqueues, cancels and replays at random; returns the jobs that it was told of.
async fn disturbs(queue: &Queue, seed: u64) -> BTreeSet<JobId> {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut told = Vec::new();
    for _ in 0..150 {
        let (key, value) = (dice.i64(0..4), dice.i64(0..1_000));
        let sent: Result<Enqueued, EnqueueError> = match dice.u8(0..5) {
            0 => runs_again::enqueue(queue, key, value).await,
            1 => is_replaced::enqueue(queue, key, value).await,
            2 => is_free_once_started::enqueue(queue, key, value).await,
            action => {
                if let Some(id) = dice.choice(&told).copied() {
                    // Refused if the job is not where it would have to be, which is fine here.
                    if action == 3 {
                        let _ = queue.cancel(id).await;
                    } else {
                        let _ = queue.replay(id).await;
                    }
                }
                continue;
            }
        };
        told.push(sent.expect("enqueued or answered").id);
    }
    told.into_iter().collect()
}

async fn works(
    queue: &Queue,
    stop: &watch::Sender<bool>,
) -> Result<(), queue_runtime::WorkerError> {
    let mut stop = stop.subscribe();
    let worker = Worker::builder(queue)
        .job::<RunsAgainJob>()
        .job::<IsReplacedJob>()
        .job::<IsFreeOnceStartedJob>()
        .concurrency(6);
    let told = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    worker.run_until(told).await
}

#[tokio::test]
async fn whatever_happens_at_once_every_job_ends_once_and_frees_its_key() {
    let file = File::new();
    let stores = [file.open().await, file.open().await];
    let stop = watch::Sender::new(false);

    let disturbed = async {
        let mut events = stores.each_ref().map(Queue::events);
        let producers = (0..4).map(|n| disturbs(&stores[n % 2], n as u64));
        let told: BTreeSet<_> = join_all(producers).await.into_iter().flatten().collect();
        let [first, second] = &mut events;
        loop {
            let counts = stores[0].counts().await.expect("it answers");
            if counts.of(JobState::Queued) + counts.of(JobState::Processing) == 0 {
                break;
            }
            // A listener that lags behind has heard of something, too.
            tokio::select! {
                _ = first.recv() => {}
                _ = second.recv() => {}
            }
        }
        stop.send_replace(true);
        Ok(told)
    };
    let workers = try_join(works(&stores[0], &stop), works(&stores[1], &stop));
    let (told, _) = try_join(disturbed, workers).await.expect("both end well");

    let counts = stores[0].counts().await.expect("it answers");
    assert_eq!(counts.total(), told.len() as u64);
    for id in told {
        let attempts = stores[0].attempts(id).await.expect("it answers");
        let open = attempts.iter().find(|a| a.finished_at.is_none());
        assert!(open.is_none(), "{id} ended and still runs: {open:?}");
    }
    let again = runs_again::enqueue(&stores[0], 0, 3).await;
    assert!(!again.expect("enqueued").duplicate, "the key is free");
    for store in &stores {
        store.close().await;
    }
}
