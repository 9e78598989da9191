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

/// Opens a store on a file of its own, which is removed with the fixture.
#[cfg(feature = "sqlite")]
#[derive(Debug)]
pub struct SqliteFixture {
    folder: tempfile::TempDir,
}

#[cfg(feature = "sqlite")]
impl SqliteFixture {
    /// Makes a place for the file.
    ///
    /// # Panics
    /// If the system's folder for temporary files cannot be written.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("the system has a place for temporary files");
        Self { folder }
    }
}

#[cfg(feature = "sqlite")]
impl Default for SqliteFixture {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "sqlite")]
#[async_trait]
impl Fixture for SqliteFixture {
    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
        use queue_runtime::store::sqlite::{SqliteOptions, SqliteStore, Synchronous};

        let file = self.folder.path().join("jobs.db");
        // What is stored does not depend on when it reaches the disk; the suite is twice as fast.
        let options = SqliteOptions::new(file.to_string_lossy())?
            .synchronous(Synchronous::Normal)
            .clock(seam);
        Ok(Arc::new(SqliteStore::open(options).await?))
    }
}
