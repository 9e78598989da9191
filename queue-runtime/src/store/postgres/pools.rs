//! The connections of a store: those for a worker's verbs apart from all others, so that producers
//! that wait for a key, or for anything else that somebody holds, never keep a worker from its jobs.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join;
use sqlx::Connection;
use sqlx::postgres::{PgPool, PgPoolOptions};

use super::connect::{self, ACQUIRE_MAX};
use super::options::PostgresOptions;

/// The most connections that are kept for a worker's verbs: one for its results, one for all else
/// that it does meanwhile.
const WORKER_MAX: u32 = 2;

/// How long a connection may lie idle before it is asked whether it still works. Asking always
/// would cost a round trip per call.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// The connections of a store.
pub(super) struct Pools {
    /// For what a worker does with its jobs, whoever else waits for a connection.
    pub(super) worker: Pool,
    /// For everything else: enqueues, look-ups, the verbs of an operator, notifications.
    pub(super) common: Pool,
}

impl Pools {
    /// Makes the pools, without opening a connection yet.
    pub(super) fn new(options: &PostgresOptions) -> Self {
        let broken = Broken::default();
        let (worker, common) = split(options.connections);
        Self {
            worker: Pool::new(options, worker, &broken),
            common: Pool::new(options, common, &broken),
        }
    }

    pub(super) fn are_closed(&self) -> bool {
        self.common.is_closed()
    }

    /// Lets nobody have a connection any more, and waits until those that are in use have come
    /// back, but no longer than a call may take: one whose runtime is driven by nobody never does.
    pub(super) async fn close(&self, options: &PostgresOptions) {
        let both = join(self.common.close(), self.worker.close());
        let bound = connect::bound(options);
        if connect::within(&*options.seam, bound, "close", both)
            .await
            .is_err()
        {
            tracing::warn!(
                server = options.server(),
                "closed the queue without waiting for connections that are still in use"
            );
        }
    }
}

/// How many connections there are for a worker's verbs, and how many for everything else.
fn split(connections: u32) -> (u32, u32) {
    let worker = (connections / 2).clamp(1, WORKER_MAX);
    (worker, connections.saturating_sub(worker).max(1))
}

/// Some of the connections of a store.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pool: PgPool,
    broken: Broken,
}

impl Pool {
    fn new(options: &PostgresOptions, connections: u32, broken: &Broken) -> Self {
        let (known, seam) = (broken.clone(), Arc::clone(&options.seam));
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_MAX)
            .test_before_acquire(false)
            .before_acquire(move |conn, about| {
                let idle_since = seam.elapsed().saturating_sub(about.idle_for);
                let is_trusted =
                    about.idle_for <= TRUSTED_FOR && !known.was_found_since(idle_since);
                Box::pin(async move {
                    if !is_trusted {
                        conn.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options.connect_options());
        Self {
            pool,
            broken: broken.clone(),
        }
    }

    /// Takes note that a connection was found to be gone.
    pub(super) fn found_broken(&self, now: Duration) {
        self.broken.found(now);
    }
}

impl Deref for Pool {
    type Target = PgPool;

    fn deref(&self) -> &PgPool {
        &self.pool
    }
}

/// When a connection was last found to be gone, in microseconds on the seam's monotonic clock.
/// What ended one has probably ended all, of both pools, so none that was used before that is
/// trusted: otherwise each of them would fail a call.
#[derive(Clone, Debug, Default)]
struct Broken(Arc<AtomicU64>);

impl Broken {
    fn found(&self, now: Duration) {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        self.0.store(now, Ordering::Relaxed);
    }

    fn was_found_since(&self, then: Duration) -> bool {
        Duration::from_micros(self.0.load(Ordering::Relaxed)) > then
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_one_or_two_of_the_connections_and_the_sum_stays() {
        for (connections, worker) in [(2, 1), (3, 1), (4, 2), (5, 2), (8, 2), (1_000, 2)] {
            assert_eq!(split(connections), (worker, connections - worker));
        }
    }
}
