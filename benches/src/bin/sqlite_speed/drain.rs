//! A worker that runs waiting jobs which do nothing, until none is left.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use queue_runtime::{Data, Queue, Worker, job};
use tokio::sync::Notify;

use crate::store;

/// Jobs that are enqueued at once, which is not measured.
const BULK: usize = 10_000;

/// What a drain came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drained {
    pub(crate) per_second: f64,
    /// Jobs per transaction of the store's writer, claims and settlements together.
    pub(crate) per_commit: f64,
}

/// Counts the runs, so that the store is not asked before the end is near.
#[derive(Default)]
struct Progress {
    runs: AtomicUsize,
    expected: usize,
    all_ran: Notify,
}

#[job]
async fn do_nothing(number: u64, progress: Data<Progress>) {
    let _ = number;
    if progress.runs.fetch_add(1, Ordering::Relaxed) + 1 == progress.expected {
        progress.all_ran.notify_one();
    }
}

/// Enqueues so many jobs and then measures a worker on them, from its start to the last job
/// being recorded as done.
pub(crate) async fn measure(folder: &Path, jobs: usize, concurrency: usize) -> Result<Drained> {
    let (queue, store) = store::open(folder).await?;
    let numbers: Vec<u64> = (0..jobs as u64).collect();
    for bulk in numbers.chunks(BULK) {
        let bulk = bulk.iter().map(|number| DoNothingJob { number: *number });
        queue.enqueue_all(bulk).await?;
    }
    let progress = Arc::new(Progress {
        expected: jobs,
        ..Progress::default()
    });
    let worker = Worker::builder(&queue)
        .shared(Arc::clone(&progress))
        .concurrency(concurrency)
        .job::<DoNothingJob>()
        .build()?;
    let before = store.commits();
    let begun = Instant::now();
    let mut seconds = 0.0;
    let drained = async {
        progress.all_ran.notified().await;
        all_done(&queue, jobs).await;
        seconds = begun.elapsed().as_secs_f64();
    };
    worker.run_until(drained).await?;
    let commits = store.commits() - before;
    let counts = queue.counts().await?;
    ensure!(
        counts.done == counts.total() && progress.runs.load(Ordering::Relaxed) == jobs,
        "the drain left {counts:?} after {:?} runs",
        progress.runs
    );
    queue.close().await;
    Ok(Drained {
        per_second: jobs as f64 / seconds,
        per_commit: jobs as f64 / commits as f64,
    })
}

/// Waits until the last results are in the store.
async fn all_done(queue: &Queue, jobs: usize) {
    // A store that does not answer ends the worker, and so this.
    while queue
        .counts()
        .await
        .is_ok_and(|counts| counts.done < jobs as u64)
    {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
