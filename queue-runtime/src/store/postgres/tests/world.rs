//! A schema of its own on the server that `QUEUE_TEST_POSTGRES_URL` names, and a clock moved by
//! hand.

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::seam::{Seam, SystemSeam};
use crate::store::postgres::{PostgresOptions, PostgresStore};

/// A store in a schema that nobody else has.
pub(crate) struct World {
    pub(crate) store: PostgresStore,
    pub(crate) schema: String,
    url: String,
}

/// Returns the server's address; `None` if the test is to be skipped.
pub(crate) fn server() -> Option<String> {
    let url = std::env::var("QUEUE_TEST_POSTGRES_URL").ok();
    assert!(
        url.is_some() || std::env::var_os("CI").is_none(),
        "QUEUE_TEST_POSTGRES_URL names no Postgres server; `cargo xtask test` starts one"
    );
    url
}

impl World {
    /// Opens a fresh store; `None` if there is no server.
    pub(crate) async fn new() -> Option<Self> {
        let url = server()?;
        let schema = format!("unit_{:016x}", SystemSeam::new().random());
        let options = PostgresOptions::new(&url)
            .and_then(|options| options.schema(&schema))
            .expect("the address of the server is valid");
        let store = PostgresStore::open(options.migrate(true))
            .await
            .expect("the server makes a schema");
        Some(Self { store, schema, url })
    }

    /// Opens a connection beside the store's.
    pub(crate) async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url)
            .await
            .expect("the server takes one more connection")
    }

    /// Removes everything.
    pub(crate) async fn end(self) {
        crate::store::Store::close(&self.store).await;
        let mut conn = self.connection().await;
        let schema = &self.schema;
        let drop = format!("set client_min_messages = error; drop schema {schema} cascade");
        conn.execute(AssertSqlSafe(drop))
            .await
            .expect("the schema is ours to drop");
    }
}
