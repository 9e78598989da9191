//! The store, used as a worker uses it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use queue_runtime::job::{
    Change, Claimed, JobState, JobType, OutcomeKind, QueueName, Settled, Settlement, WorkerId,
};
use queue_runtime::store::postgres::PostgresStore;
use queue_runtime::store::{ClaimRequest, Store, Suspects};

use crate::drain::{Drainer, Turned};
use crate::world::JOB_TYPE;

/// Lost leases that are looked for at once.
const EXPIRED: usize = 100;

/// A loop that settles what it claimed before and claims more.
pub(crate) struct StoreLoop {
    store: Arc<PostgresStore>,
    request: ClaimRequest,
    held: Vec<Claimed>,
}

impl StoreLoop {
    pub(crate) fn new(store: &Arc<PostgresStore>, batch: usize) -> Self {
        let request = ClaimRequest {
            worker: WorkerId::new("postgres-speed@1").expect("a valid name"),
            queues: vec![QueueName::default_queue()],
            job_types: vec![(JobType::new(JOB_TYPE).expect("a valid name"), 1)],
            limit: batch,
            lease: Duration::from_mins(1),
            suspects: Suspects {
                crashes: 2,
                limit: 1,
            },
        };
        Self {
            store: Arc::clone(store),
            request,
            held: Vec::new(),
        }
    }
}

impl Drainer for StoreLoop {
    async fn turn(&mut self) -> Result<Turned> {
        let settlements: Vec<Settlement> = self.held.iter().map(done).collect();
        let (settled, claimed) = self.store.exchange(&settlements, &self.request).await?;
        ensure!(
            settled
                .iter()
                .all(|settled| *settled == Settled::Applied(JobState::Done)),
            "a settlement was stale"
        );
        self.held = claimed;
        Ok(Turned {
            settled: settlements.len(),
            claimed: self.held.len(),
        })
    }
}

fn done(job: &Claimed) -> Settlement {
    Settlement {
        id: job.id,
        token: job.token,
        change: Change::Done,
        outcome: OutcomeKind::Success,
        error: None,
        attempts: job.attempt,
        crashes: 0,
        snoozes: job.snoozes,
        only_if_expired: false,
    }
}

/// Looks for lost leases once a second, as a worker does beside its loops.
pub(crate) async fn look_for_expired(store: &PostgresStore) -> Result<Infallible> {
    loop {
        let expired = store.expired(EXPIRED).await?;
        ensure!(expired.is_empty(), "a lease ran out during the measurement");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
