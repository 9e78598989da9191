//! The stores that come with the library, ready for the suite.

use std::sync::Arc;

use async_trait::async_trait;
use queue_runtime::error::BoxError;
use queue_runtime::seam::Seam;
use queue_runtime::store::Store;
use queue_runtime::store::memory::MemoryStore;

use super::subject::Fixture;

/// Opens a store in memory, whose jobs live and die with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryFixture;

#[async_trait]
impl Fixture for MemoryFixture {
    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
        Ok(Arc::new(MemoryStore::new(seam)))
    }
}
