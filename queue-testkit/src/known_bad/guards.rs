//! Settlements whose guard is missing a part.

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{Settled, Settlement};
use queue_runtime::store::Store;

use super::twist::Twist;

/// Settlements, or rescues, find their job by its id alone.
pub(super) struct ById {
    pub(super) rescues: bool,
}

#[async_trait]
impl Twist for ById {
    async fn settle(
        &self,
        store: &dyn Store,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut unguarded = settlements.to_vec();
        let of_this_kind = |item: &&mut Settlement| item.only_if_expired == self.rescues;
        for item in unguarded.iter_mut().filter(of_this_kind) {
            // Whoever asks is taken for the holder.
            let found = store.job(item.id).await?;
            if let Some(token) = found.and_then(|record| record.lock_token) {
                item.token = token;
            }
        }
        store.settle(&unguarded).await
    }
}

/// Rescues do not ask whether the lease has run out.
pub(super) struct AnyLease;

#[async_trait]
impl Twist for AnyLease {
    async fn settle(
        &self,
        store: &dyn Store,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut unguarded = settlements.to_vec();
        for item in &mut unguarded {
            item.only_if_expired = false;
        }
        store.settle(&unguarded).await
    }
}
