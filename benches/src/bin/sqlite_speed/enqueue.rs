//! Producers that enqueue one job after the other, each waiting until its job is on the disk.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use queue_runtime::store::sqlite::SqliteStore;
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

/// A number of enqueuers on a file of their own, measured piece by piece.
pub(crate) struct Enqueuers {
    queue: Queue,
    store: Arc<SqliteStore>,
    count: usize,
    jobs: u64,
    time: Duration,
}

impl Enqueuers {
    pub(crate) async fn open(folder: &Path, count: usize) -> Result<Self> {
        let (queue, store) = store::open(folder).await?;
        Ok(Self {
            queue,
            store,
            count,
            jobs: 0,
            time: Duration::ZERO,
        })
    }

    /// Lets all of them enqueue for a span.
    pub(crate) async fn run(&mut self, span: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..self.count {
            tasks.spawn(enqueue_until(self.queue.clone(), begun + span));
        }
        while let Some(jobs) = tasks.join_next().await {
            self.jobs += jobs??;
        }
        self.time += begun.elapsed();
        Ok(())
    }

    pub(crate) async fn finish(self) -> Enqueued {
        self.queue.close().await;
        Enqueued {
            per_second: self.jobs as f64 / self.time.as_secs_f64(),
            per_commit: self.jobs as f64 / self.store.commits() as f64,
        }
    }
}

async fn enqueue_until(queue: Queue, end: Instant) -> Result<u64> {
    let mut jobs = 0;
    while Instant::now() < end {
        send_receipt::enqueue(&queue, jobs, "ada.lovelace@example.org".to_owned()).await?;
        jobs += 1;
    }
    Ok(jobs)
}
