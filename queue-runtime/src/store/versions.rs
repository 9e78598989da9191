//! The registry: the newest version of every cached thing, kept beside the jobs.

use async_trait::async_trait;

use crate::error::StoreError;

/// Reads the registry. It is written by [`insert`](crate::store::Store::insert), in the
/// transaction that enqueues the refresh, and only rises.
#[async_trait]
pub trait Versions: Send + Sync {
    /// Returns the newest version that was announced for a cache key; `None` if none was.
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError>;
}
