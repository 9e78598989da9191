//! What every store promises, kept by Postgres behind a pooler that gives out servers per
//! transaction (O-072).

use std::sync::Arc;

use queue_runtime::error::BoxError;
use queue_runtime::seam::{Seam, SystemSeam};
use queue_runtime::store::Store;
use queue_runtime::store::postgres::{PostgresOptions, PostgresStore};
use queue_testkit::conformance::Fixture;
use queue_testkit::conformance_suite;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

/// Where the pooler is; `cargo xtask test` starts one.
const VARIABLE: &str = "QUEUE_TEST_PGBOUNCER_URL";

/// Opens a store in a schema of its own by way of a pooler.
struct PooledFixture {
    url: Option<String>,
    schema: String,
}

impl PooledFixture {
    fn new() -> Self {
        Self {
            url: std::env::var(VARIABLE).ok(),
            schema: format!("test_{:016x}", SystemSeam::new().random()),
        }
    }

    fn url(&self) -> Result<&str, BoxError> {
        Ok(self.url.as_deref().ok_or("no pooler is named")?)
    }
}

#[async_trait::async_trait]
impl Fixture for PooledFixture {
    fn missing(&self) -> Option<String> {
        let why = format!("{VARIABLE} names no pooler; `cargo xtask test` starts one");
        self.url.is_none().then_some(why)
    }

    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
        let options = PostgresOptions::new(self.url()?)?
            .schema(&self.schema)?
            .connections(6)?
            .behind_pooler(true)
            .migrate(true)
            .clock(seam);
        Ok(Arc::new(PostgresStore::open(options).await?))
    }

    async fn discard(&self) -> Result<(), BoxError> {
        let options: PgConnectOptions = self.url()?.parse()?;
        let mut conn = options.extra_float_digits(None::<i8>).connect().await?;
        // The name was made above, of letters and digits.
        let schema = &self.schema;
        let drop = format!("set local client_min_messages = error; drop schema {schema} cascade");
        conn.execute(AssertSqlSafe(drop)).await?;
        Ok(())
    }
}

conformance_suite!(postgres_pooled, PooledFixture::new(); wakes, durable);
