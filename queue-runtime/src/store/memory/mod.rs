//! The store in memory: the executable specification of what every verb means.
//!
//! One lock around plain maps, written for reading rather than for speed; nothing outlives the
//! process. Real stores are compared with this one, case by case and history by history.

mod admin;
mod insert;
mod lifecycle;
mod state;
#[cfg(test)]
mod tests;
mod verify;
mod waiting;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use self::state::State;
use super::{
    Admin, Cancelling, ClaimRequest, Counts, Edit, Extended, Heartbeat, Inserted, Pruned,
    Replaying, Retention, Store, Unread, Versions, Waiting, Wake, WakeListener,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::job::{
    Attempt, Claimed, JobId, JobRecord, JobState, JobType, Lease, NewJob, QueueName, Settled,
    Settlement, Verified,
};
use crate::seam::Seam;
use crate::time::Timestamp;

/// A store that lives and dies with the process. Clones share one set of jobs.
///
/// Its clock is the seam's wall clock. For unit tests, and for learning what a verb means.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    seam: Arc<dyn Seam>,
    state: Mutex<State>,
    wake: Wake,
}

impl MemoryStore {
    /// Makes an empty store on a seam's clock.
    pub fn new(seam: Arc<dyn Seam>) -> Self {
        let state = Mutex::new(State::default());
        Self {
            shared: Arc::new(Shared {
                seam,
                state,
                wake: Wake::new(),
            }),
        }
    }

    fn clock(&self) -> Timestamp {
        self.shared.seam.now()
    }

    /// Locks the state; a panic inside a verb would be a bug of this store, and tests show it.
    fn state(&self, operation: &'static str) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self
            .shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(StoreError::new(
                StoreErrorKind::Closed,
                operation,
                "the memory store is closed",
            ));
        }
        Ok(state)
    }

    /// Runs one step under the lock, and wakes listeners if it made a job claimable.
    fn step<T>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&mut State, Timestamp) -> T,
    ) -> Result<T, StoreError> {
        let now = self.clock();
        let mut state = self.state(operation)?;
        let answer = step(&mut state, now);
        if std::mem::take(&mut state.claimable_news) {
            self.shared.wake.notify();
        }
        Ok(answer)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        self.step("insert", |state, now| {
            jobs.iter().map(|job| state.insert(job, now)).collect()
        })
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.step("claim", |state, now| state.claim(request, now))
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        self.step("settle", |state, now| {
            settlements
                .iter()
                .map(|settlement| state.settle(settlement, now))
                .collect()
        })
    }

    async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        self.step("exchange", |state, now| {
            let settled = settlements.iter().map(|s| state.settle(s, now)).collect();
            (settled, state.claim(request, now))
        })
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        drop(self.state("heartbeat")?);
        Ok(Box::new(self.clone()))
    }

    async fn expired(&self, limit: usize) -> Result<Vec<JobRecord>, StoreError> {
        self.step("expired", |state, now| state.expired(limit, now))
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        self.step("next_due", |state, now| state.next_due(request, now))
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.state("migrate").map(|_| ())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock())
    }

    fn wakes(&self) -> WakeListener {
        self.shared.wake.listen()
    }

    async fn close(&self) {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
    }
}

#[async_trait]
impl Heartbeat for MemoryStore {
    async fn extend(
        &mut self,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        self.step("extend", |state, now| {
            leases
                .iter()
                .map(|held| state.extend(held, lease, now))
                .collect()
        })
    }
}

#[async_trait]
impl Versions for MemoryStore {
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError> {
        Ok(self
            .state("newest_version")?
            .versions
            .get(cache_key)
            .copied())
    }
}

#[async_trait]
impl Admin for MemoryStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        Ok(self.state("job")?.find(id).map(|job| job.record.clone()))
    }

    async fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        Ok(self.state("finished")?.finished(state, before, limit))
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        Ok(self.state("attempts")?.attempts_of(id))
    }

    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError> {
        self.step("cancel", |state, now| state.cancel(id, now))
    }

    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError> {
        self.step("replay", |state, now| state.replay(id, as_new, None, now))
    }

    async fn replay_with(
        &self,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        self.step("replay_with", |state, now| {
            state.replay(id, as_new, Some(edit), now)
        })
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        Ok(self.state("counts")?.counts())
    }

    async fn unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        Ok(self.state("unread")?.unread(queues, known))
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        Ok(self.state("waiting")?.waiting())
    }

    async fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let state = self.state("waiting_sample")?;
        Ok(state.waiting_sample(job_type, queue, schema, after, count))
    }

    async fn verify(&self, limit: usize) -> Result<Verified, StoreError> {
        let now = self.clock();
        Ok(self.state("verify")?.verify(limit, now))
    }

    async fn prune(&self, retention: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        self.step("prune", |state, now| state.prune(retention, limit, now))
    }
}
