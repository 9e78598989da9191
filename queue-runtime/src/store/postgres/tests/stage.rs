//! A store with a listener beside it, for tests of the wake-ups between processes.

use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::world::server;
use crate::job::{Due, JobType, NewJob, QueueName};
use crate::seam::{Seam, SystemSeam};
use crate::store::postgres::{PostgresOptions, PostgresStore};

/// Far above what anything here takes; a test that waits longer has lost its way.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Waits for an event.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        happened = event => happened,
        () = SystemSeam::new().sleep(WAIT_MAX) => panic!("{what} did not happen in {WAIT_MAX:?}"),
    }
}

/// A job of the type `mail` in the queue `default`, due now.
pub(crate) fn job() -> NewJob {
    NewJob {
        id: SystemSeam::new().job_id(),
        job_type: JobType::new("mail").expect("a plain word"),
        queue: QueueName::default_queue(),
        payload: r#"{"to":"ada@example.org"}"#.to_owned(),
        payload_schema: 1,
        priority: 0,
        max_attempts: 5,
        due: Due::Now,
        deadline: None,
        dedupe: None,
        idempotency: None,
        cache: None,
        trace_context: None,
    }
}

fn options(url: &str, schema: &str) -> PostgresOptions {
    PostgresOptions::new(url)
        .and_then(|options| options.schema(schema))
        .expect("the address of the server is valid")
}

/// A store in a schema that nobody else has.
pub(crate) struct World {
    pub(crate) store: PostgresStore,
    pub(crate) schema: String,
    url: String,
}

impl World {
    /// Opens a fresh store; `None` if there is no server.
    pub(crate) async fn new() -> Option<Self> {
        let url = server()?;
        let schema = format!("unit_{:016x}", SystemSeam::new().random());
        let store = PostgresStore::open(options(&url, &schema).migrate(true))
            .await
            .expect("the server makes a schema");
        Some(Self { store, schema, url })
    }

    /// How the store was opened.
    pub(crate) fn options(&self) -> PostgresOptions {
        options(&self.url, &self.schema)
    }

    /// Opens another store on the same schema, as another process does.
    pub(crate) async fn another(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::open(options)
            .await
            .expect("the tables are there")
    }

    /// Hears every notification of the store's processes.
    pub(crate) async fn listener(&self) -> PgListener {
        let mut listener = PgListener::connect(&self.url)
            .await
            .expect("the server takes one more connection");
        let channel = &self.store.wakes.names.jobs;
        listener.listen(channel).await.expect("a valid name");
        listener
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
