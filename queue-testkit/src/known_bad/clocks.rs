//! Leases by the clock of the process that asks.
//!
//! One such process is at peace with itself: what it grants by its clock it judges by its clock.
//! Beside a process whose clock is right it takes jobs that are still held, or holds jobs too long.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{Claimed, JobId, JobRecord, JobState, Lease, Settled, Settlement};
use queue_runtime::store::{ClaimRequest, Extended, Heartbeat, Store};
use queue_runtime::time::Timestamp;

use super::twist::Twist;

/// How far the clock of the process goes before the store's.
const AHEAD: Duration = Duration::from_mins(10);

/// Remembers what was claimed, since a store lists only what has run out by its own clock.
#[derive(Default)]
pub(super) struct OfTheProcess {
    claimed: Mutex<BTreeSet<JobId>>,
}

impl OfTheProcess {
    fn known(&self) -> MutexGuard<'_, BTreeSet<JobId>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn now(store: &dyn Store) -> Result<Timestamp, StoreError> {
        Ok(store.now().await?.saturating_add(AHEAD))
    }
}

#[async_trait]
impl Twist for OfTheProcess {
    async fn claim(
        &self,
        store: &dyn Store,
        request: &ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError> {
        let claimed = store
            .claim(&ClaimRequest {
                lease: request.lease.saturating_add(AHEAD),
                ..request.clone()
            })
            .await?;
        self.known().extend(claimed.iter().map(|run| run.id));
        Ok(claimed)
    }

    async fn settle(
        &self,
        store: &dyn Store,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let now = Self::now(store).await?;
        let mut replies = Vec::new();
        for item in settlements {
            let holds = item.only_if_expired
                && store
                    .job(item.id)
                    .await?
                    .and_then(|record| record.locked_until)
                    .is_some_and(|end| end > now);
            let judged = Settlement {
                only_if_expired: false,
                ..item.clone()
            };
            replies.extend(match holds {
                true => vec![Settled::Stale],
                false => store.settle(&[judged]).await?,
            });
        }
        Ok(replies)
    }

    async fn extend(
        &self,
        heartbeat: &mut dyn Heartbeat,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        heartbeat.extend(leases, lease.saturating_add(AHEAD)).await
    }

    async fn expired(&self, store: &dyn Store, limit: usize) -> Result<Vec<JobRecord>, StoreError> {
        let now = Self::now(store).await?;
        let known = self.known().clone();
        let mut expired = Vec::new();
        for id in known {
            let Some(record) = store.job(id).await? else {
                continue;
            };
            let running = record.state == JobState::Processing;
            if running && record.locked_until.is_some_and(|end| end <= now) {
                expired.push(record);
            }
        }
        expired.sort_by_key(|record| (record.locked_until, record.id));
        expired.truncate(limit);
        Ok(expired)
    }
}
