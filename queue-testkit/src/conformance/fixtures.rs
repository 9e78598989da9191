//! The stores that come with the library, ready for the suite.

use std::sync::Arc;
#[cfg(feature = "postgres")]
use std::sync::PoisonError;

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

/// Opens a store in a schema of its own on a server that others share.
///
/// The server is the one that `QUEUE_TEST_POSTGRES_URL` names; `cargo xtask test` starts one and
/// sets the variable. Without it the suite says so and is skipped, but fails where `CI` is set.
#[cfg(feature = "postgres")]
#[derive(Debug)]
pub struct PostgresFixture {
    url: Option<String>,
    schema: String,
    is_recycled: bool,
}

/// Empty schemas that were used before in this process.
#[cfg(feature = "postgres")]
static EMPTIED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

#[cfg(feature = "postgres")]
impl PostgresFixture {
    /// The environment variable that names the server.
    pub const VARIABLE: &str = "QUEUE_TEST_POSTGRES_URL";

    /// Chooses a schema that nobody has.
    pub fn new() -> Self {
        use queue_runtime::seam::SystemSeam;
        Self {
            url: std::env::var(Self::VARIABLE).ok(),
            schema: format!("test_{:016x}", SystemSeam::new().random()),
            is_recycled: false,
        }
    }

    /// Takes a schema that was used before in this process, or a new one; it is emptied instead of
    /// dropped, which is quicker for a test that opens hundreds of stores. Such a test ends with
    /// [`drop_recycled`](Self::drop_recycled).
    pub fn recycled() -> Self {
        let emptied = EMPTIED.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let new = Self::new();
        Self {
            schema: emptied.unwrap_or_else(|| new.schema.clone()),
            is_recycled: true,
            ..new
        }
    }

    /// Drops the schemas that [`recycled`](Self::recycled) has left.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn drop_recycled() -> Result<(), BoxError> {
        loop {
            let emptied = EMPTIED.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(schema) = emptied else { return Ok(()) };
            let last = Self {
                schema,
                ..Self::new()
            };
            last.discard().await?;
        }
    }

    async fn execute(&self, sql: String) -> Result<(), BoxError> {
        use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

        let url = self.url.as_deref().ok_or("no Postgres server is named")?;
        let mut conn = PgConnection::connect(url).await?;
        conn.execute("set client_min_messages = error").await?;
        conn.execute(AssertSqlSafe(sql)).await?;
        Ok(())
    }

    /// Returns the schema's name.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns the address of the queue; `None` if no server is named.
    pub fn url(&self) -> Option<String> {
        let url = self.url.as_deref()?;
        let joint = if url.contains('?') { '&' } else { '?' };
        Some(format!("{url}{joint}schema={}", self.schema))
    }

    /// Returns how to open the store, its clock not set.
    ///
    /// # Errors
    /// If no server is named, or its address is none.
    pub fn options(&self) -> Result<queue_runtime::store::postgres::PostgresOptions, BoxError> {
        use queue_runtime::store::postgres::PostgresOptions;

        let url = self.url.as_deref().ok_or("no Postgres server is named")?;
        // What a case needs at once: its verbs, and a few that race.
        let options = PostgresOptions::new(url)?.schema(&self.schema)?;
        Ok(options.connections(6)?.migrate(true))
    }
}

#[cfg(feature = "postgres")]
impl Default for PostgresFixture {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "postgres")]
#[async_trait]
impl Fixture for PostgresFixture {
    fn missing(&self) -> Option<String> {
        match self.url {
            Some(_) => None,
            None => Some(format!(
                "{} names no Postgres server; `cargo xtask test` starts one",
                Self::VARIABLE
            )),
        }
    }

    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
        use queue_runtime::store::postgres::PostgresStore;

        let store = PostgresStore::open(self.options()?.clock(seam)).await?;
        Ok(Arc::new(store))
    }

    async fn discard(&self) -> Result<(), BoxError> {
        if self.url.is_none() {
            return Ok(());
        }
        // The name was made above, of letters and digits.
        let schema = &self.schema;
        if !self.is_recycled {
            return self.execute(format!("drop schema {schema} cascade")).await;
        }
        let tables = [
            "jobs",
            "finished_jobs",
            "attempts",
            "idempotency_keys",
            "dedupe_windows",
            "versions",
        ];
        let delete = tables.map(|table| format!("delete from {schema}.{table}"));
        self.execute(delete.join("; ")).await?;
        let mut emptied = EMPTIED.lock().unwrap_or_else(PoisonError::into_inner);
        emptied.push(schema.clone());
        Ok(())
    }
}
