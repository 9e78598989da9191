//! Verbs that do less than they were asked to.

use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{Attempt, Claimed, JobRecord, JobState, Lease, Settled, Settlement};
use queue_runtime::store::{ClaimRequest, Extended, Heartbeat, Store};

use super::twist::Twist;

/// What follows a stale item of a batch is left undone and answered as stale too.
pub(super) struct EndedByABadItem;

#[async_trait]
impl Twist for EndedByABadItem {
    async fn settle(
        &self,
        store: &dyn Store,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut replies = Vec::new();
        for item in settlements {
            let reply = match replies.last() {
                Some(Settled::Stale) => Settled::Stale,
                _ => one(store.settle(std::slice::from_ref(item)).await?),
            };
            replies.push(reply);
        }
        Ok(replies)
    }

    async fn extend(
        &self,
        heartbeat: &mut dyn Heartbeat,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        let mut replies = Vec::new();
        for held in leases {
            let reply = match replies.last() {
                Some(Extended::Lost) => Extended::Lost,
                _ => one(heartbeat.extend(&[*held], lease).await?),
            };
            replies.push(reply);
        }
        Ok(replies)
    }
}

fn one<T>(mut replies: Vec<T>) -> T {
    replies.pop().expect("a store answers every item")
}

/// A claim starts an attempt without counting it; only a settlement writes a number.
pub(super) struct AttemptNotCounted;

#[async_trait]
impl Twist for AttemptNotCounted {
    async fn claim(
        &self,
        store: &dyn Store,
        request: &ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError> {
        let mut claimed = store.claim(request).await?;
        for run in &mut claimed {
            run.attempt = run.attempt.saturating_sub(1);
        }
        Ok(claimed)
    }

    fn shown(&self, record: &mut JobRecord) {
        if record.state == JobState::Processing {
            record.attempts = record.attempts.saturating_sub(1);
        }
    }

    fn recalled(&self, attempt: &mut Attempt) {
        attempt.number = attempt.number.saturating_sub(1);
    }
}
