//! A store with a fault before it.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{
    Attempt, Claimed, JobId, JobRecord, JobState, JobType, Lease, NewJob, QueueName, Settled,
    Settlement, Verified,
};
use queue_runtime::store::{
    Admin, Cancelling, ClaimRequest, Counts, Edit, Extended, Heartbeat, Inserted, Pruned,
    Replaying, Retention, Store, Unread, Versions, Waiting, WakeListener,
};
use queue_runtime::time::Timestamp;

use super::twist::Twist;

pub(super) struct PlantedStore {
    store: Arc<dyn Store>,
    twist: Arc<dyn Twist>,
}

impl PlantedStore {
    pub(super) fn new(store: Arc<dyn Store>, twist: Arc<dyn Twist>) -> Self {
        Self { store, twist }
    }

    fn shown(&self, mut records: Vec<JobRecord>) -> Vec<JobRecord> {
        let show = |record| self.twist.shown(record);
        records.iter_mut().for_each(show);
        records
    }
}

impl Debug for PlantedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Planted({:?})", self.store)
    }
}

#[async_trait]
impl Store for PlantedStore {
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        self.twist.insert(self.store.as_ref(), jobs).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        self.twist.claim(self.store.as_ref(), request).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        self.twist.settle(self.store.as_ref(), settlements).await
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        let heartbeat = self.store.heartbeat().await?;
        let twist = Arc::clone(&self.twist);
        Ok(Box::new(PlantedHeartbeat { heartbeat, twist }))
    }

    async fn expired(&self, limit: usize) -> Result<Vec<JobRecord>, StoreError> {
        let expired = self.twist.expired(self.store.as_ref(), limit).await?;
        Ok(self.shown(expired))
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        self.store.next_due(request).await
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.store.migrate().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now().await
    }

    fn wakes(&self) -> WakeListener {
        self.store.wakes()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

struct PlantedHeartbeat {
    heartbeat: Box<dyn Heartbeat>,
    twist: Arc<dyn Twist>,
}

#[async_trait]
impl Heartbeat for PlantedHeartbeat {
    async fn extend(
        &mut self,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        let heartbeat = self.heartbeat.as_mut();
        self.twist.extend(heartbeat, leases, lease).await
    }
}

#[async_trait]
impl Admin for PlantedStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let mut found = self.store.job(id).await?;
        if let Some(record) = &mut found {
            self.twist.shown(record);
        }
        Ok(found)
    }

    async fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let finished = self.store.finished(state, before, limit).await?;
        Ok(self.shown(finished))
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        let mut attempts = self.store.attempts(id).await?;
        let recall = |attempt| self.twist.recalled(attempt);
        attempts.iter_mut().for_each(recall);
        Ok(attempts)
    }

    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError> {
        self.store.cancel(id).await
    }

    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError> {
        self.twist.replay(self.store.as_ref(), id, as_new).await
    }

    async fn replay_with(
        &self,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        let store = self.store.as_ref();
        self.twist.replay_with(store, id, as_new, edit).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.store.counts().await
    }

    async fn unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        self.store.unread(queues, known).await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        self.store.waiting().await
    }

    async fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let store = self.store.as_ref();
        let listed = store
            .waiting_sample(job_type, queue, schema, after, count)
            .await?;
        Ok(self.shown(listed))
    }

    async fn verify(&self, limit: usize) -> Result<Verified, StoreError> {
        self.store.verify(limit).await
    }

    async fn prune(&self, retention: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        let store = self.store.as_ref();
        self.twist.prune(store, retention, limit).await
    }
}

#[async_trait]
impl Versions for PlantedStore {
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError> {
        self.store.newest_version(cache_key).await
    }
}
