//! Producers that enqueue one job after the other, each waiting until its job is on the disk.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use queue_runtime::{Queue, job};
use tokio::task::JoinSet;

use crate::store;

/// What a number of enqueuers reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enqueued {
    pub(crate) per_second: f64,
    pub(crate) per_commit: f64,
}

// Declared for its payload, which is of an everyday size; nobody runs it here.
#[job]
async fn send_receipt(user_id: u64, email: String) {
    let _ = (user_id, email);
}

/// Lets so many enqueue for a span.
pub(crate) async fn measure(folder: &Path, enqueuers: usize, span: Duration) -> Result<Enqueued> {
    let (queue, store) = store::open(folder).await?;
    let before = store.commits();
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..enqueuers {
        tasks.spawn(enqueue_until(queue.clone(), begun + span));
    }
    let mut jobs = 0;
    while let Some(enqueued) = tasks.join_next().await {
        jobs += enqueued??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let commits = store.commits() - before;
    queue.close().await;
    Ok(Enqueued {
        per_second: jobs as f64 / seconds,
        per_commit: jobs as f64 / commits as f64,
    })
}

async fn enqueue_until(queue: Queue, end: Instant) -> Result<u64> {
    let mut jobs = 0;
    while Instant::now() < end {
        send_receipt::enqueue(&queue, jobs, "ada.lovelace@example.org".to_owned()).await?;
        jobs += 1;
    }
    Ok(jobs)
}
