//! An opened store with what goes with it: the seam, the event stream and the cache.

use std::sync::Arc;

use crate::cache::Cache;
use crate::error::EnqueueError;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::error::FenceError;
use crate::job::NewJob;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::job::{Lease, Settlement};
use crate::observe::Events;
use crate::seam::{Seam, SystemSeam};
use crate::store::memory::MemoryStore;
#[cfg(feature = "postgres")]
use crate::store::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
use crate::store::sqlite::SqliteStore;
use crate::store::{Inserted, Store, Tx};

/// What producers and workers of one queue share.
#[derive(Debug)]
pub struct Backend {
    store: Arc<dyn Store>,
    seam: Arc<dyn Seam>,
    events: Events,
    cache: Cache,
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    sql: SqlStore,
}

/// The store as the type that a caller's transaction is for.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[derive(Debug, Default)]
enum SqlStore {
    /// One that has no transactions of the caller's.
    #[default]
    None,
    #[cfg(feature = "sqlite")]
    Sqlite(Arc<SqliteStore>),
    #[cfg(feature = "postgres")]
    Postgres(Arc<PostgresStore>),
}

impl Backend {
    pub(crate) fn new(store: Arc<dyn Store>, seam: Arc<dyn Seam>) -> Arc<Self> {
        Arc::new(Self::with_store(store, seam))
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn on_sqlite(store: Arc<SqliteStore>, seam: Arc<dyn Seam>) -> Arc<Self> {
        let backend = Self::with_store(Arc::clone(&store) as Arc<dyn Store>, seam);
        Arc::new(Self {
            sql: SqlStore::Sqlite(store),
            ..backend
        })
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn on_postgres(store: Arc<PostgresStore>, seam: Arc<dyn Seam>) -> Arc<Self> {
        let backend = Self::with_store(Arc::clone(&store) as Arc<dyn Store>, seam);
        Arc::new(Self {
            sql: SqlStore::Postgres(store),
            ..backend
        })
    }

    /// Makes a backend on an empty memory store and the real clock.
    pub(crate) fn in_memory() -> Arc<Self> {
        let seam: Arc<dyn Seam> = Arc::new(SystemSeam::new());
        Self::new(Arc::new(MemoryStore::new(Arc::clone(&seam))), seam)
    }

    fn with_store(store: Arc<dyn Store>, seam: Arc<dyn Seam>) -> Self {
        Self {
            store,
            events: Events::new(),
            cache: Cache::new(Arc::clone(&seam)),
            seam,
            #[cfg(any(feature = "sqlite", feature = "postgres"))]
            sql: SqlStore::None,
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn seam(&self) -> &Arc<dyn Seam> {
        &self.seam
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn sqlite(&self) -> Option<&Arc<SqliteStore>> {
        match &self.sql {
            SqlStore::Sqlite(store) => Some(store),
            _ => None,
        }
    }

    /// Inserts jobs inside a caller's transaction.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) async fn insert_in(
        &self,
        tx: Tx<'_>,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, EnqueueError> {
        match (tx, &self.sql) {
            #[cfg(feature = "sqlite")]
            (Tx::Sqlite(conn), SqlStore::Sqlite(store)) => store.insert_in(conn, jobs).await,
            #[cfg(feature = "postgres")]
            (Tx::Postgres(conn), SqlStore::Postgres(store)) => store.insert_in(conn, jobs).await,
            (tx, _) => Err(EnqueueError::of_fence(elsewhere(&tx))),
        }
    }

    #[cfg(not(any(feature = "sqlite", feature = "postgres")))]
    pub(crate) async fn insert_in(
        &self,
        tx: Tx<'_>,
        _: &[NewJob],
    ) -> Result<Vec<Inserted>, EnqueueError> {
        let Tx::None(never, _) = tx;
        match never {}
    }

    /// Completes a job inside a caller's transaction.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) async fn complete_in(
        &self,
        tx: Tx<'_>,
        settlement: &Settlement,
    ) -> Result<(), FenceError> {
        match (tx, &self.sql) {
            #[cfg(feature = "sqlite")]
            (Tx::Sqlite(conn), SqlStore::Sqlite(store)) => {
                store.complete_in(conn, settlement).await
            }
            #[cfg(feature = "postgres")]
            (Tx::Postgres(conn), SqlStore::Postgres(store)) => {
                store.complete_in(conn, settlement).await
            }
            (tx, _) => Err(elsewhere(&tx)),
        }
    }

    /// Checks inside a caller's transaction that a lease is held, and keeps it from being taken
    /// until that ends.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) async fn fence_in(&self, tx: Tx<'_>, lease: Lease) -> Result<(), FenceError> {
        match (tx, &self.sql) {
            #[cfg(feature = "sqlite")]
            (Tx::Sqlite(conn), SqlStore::Sqlite(store)) => store.fence_in(conn, lease).await,
            #[cfg(feature = "postgres")]
            (Tx::Postgres(conn), SqlStore::Postgres(store)) => store.fence_in(conn, lease).await,
            (tx, _) => Err(elsewhere(&tx)),
        }
    }
}

/// The queue is not kept where the transaction is.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn elsewhere(tx: &Tx<'_>) -> FenceError {
    FenceError::OtherDatabase {
        rule: format!("the queue is not kept in {}", tx.database()),
    }
}
