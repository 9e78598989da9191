//! Where a fault may take hold: the verbs of a store, each of which does right unless a fault says
//! otherwise.

use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{Attempt, Claimed, JobId, JobRecord, Lease, NewJob, Settled, Settlement};
use queue_runtime::store::{
    ClaimRequest, Edit, Extended, Heartbeat, Inserted, Pruned, Replaying, Retention, Store,
};

/// A fault; `store` is the one behind it, which keeps its promises.
#[async_trait]
pub(super) trait Twist: Send + Sync + 'static {
    async fn insert(
        &self,
        store: &dyn Store,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, StoreError> {
        store.insert(jobs).await
    }

    async fn claim(
        &self,
        store: &dyn Store,
        request: &ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError> {
        store.claim(request).await
    }

    async fn settle(
        &self,
        store: &dyn Store,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        store.settle(settlements).await
    }

    async fn extend(
        &self,
        heartbeat: &mut dyn Heartbeat,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        heartbeat.extend(leases, lease).await
    }

    async fn expired(&self, store: &dyn Store, limit: usize) -> Result<Vec<JobRecord>, StoreError> {
        store.expired(limit).await
    }

    async fn replay(
        &self,
        store: &dyn Store,
        id: JobId,
        as_new: bool,
    ) -> Result<Replaying, StoreError> {
        store.replay(id, as_new).await
    }

    async fn replay_with(
        &self,
        store: &dyn Store,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        store.replay_with(id, as_new, edit).await
    }

    async fn prune(
        &self,
        store: &dyn Store,
        retention: &Retention,
        limit: usize,
    ) -> Result<Pruned, StoreError> {
        store.prune(retention, limit).await
    }

    /// Changes a job as this store would show it.
    fn shown(&self, _record: &mut JobRecord) {}

    /// Changes an attempt as this store would show it.
    fn recalled(&self, _attempt: &mut Attempt) {}
}

/// No fault at all.
pub(super) struct Straight;

impl Twist for Straight {}
