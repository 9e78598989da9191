//! A schema of its own on a Postgres server, for queues of several processes; and a bound on
//! waiting for what a real server does.

use std::time::Duration;

use queue_runtime::seam::{Seam, SystemSeam};
use queue_runtime::store::postgres::PostgresOptions;
use queue_testkit::conformance::{PostgresFixture, is_skipped};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use xtask::servers::{self, Postgres};

/// Far above what anything here takes; a test that waits longer has lost its way.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits for an event.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(WAIT_MAX, event).await {
        Ok(happened) => happened,
        Err(_) => panic!("{what} did not happen in {WAIT_MAX:?}"),
    }
}

/// A schema that nobody else has, on the server that all tests share.
pub(crate) struct Shared {
    pub(crate) url: String,
    schema: String,
}

impl Shared {
    /// Chooses a schema; `None` if there is no server.
    pub(crate) fn new() -> Option<Self> {
        if is_skipped(&PostgresFixture::new()) {
            return None;
        }
        Some(Self {
            url: std::env::var(PostgresFixture::VARIABLE).ok()?,
            schema: format!("test_{:016x}", SystemSeam::new().random()),
        })
    }

    /// How a process opens the queue; the first one makes its tables.
    pub(crate) fn options(&self) -> PostgresOptions {
        let options = PostgresOptions::new(&self.url).expect("the server's address");
        self.in_schema(options)
    }

    /// The same for another way to the server.
    pub(crate) fn in_schema(&self, options: PostgresOptions) -> PostgresOptions {
        let options = options.schema(&self.schema).expect("a plain word");
        options.migrate(true)
    }

    /// Removes everything.
    pub(crate) async fn end(self) {
        let mut conn = PgConnection::connect(&self.url).await.expect("connected");
        let schema = &self.schema;
        let drop = format!("set client_min_messages = error; drop schema {schema} cascade");
        let dropped = conn.execute(AssertSqlSafe(drop)).await;
        dropped.expect("the schema is ours to drop");
    }
}

/// Starts a server that a test may stop and kill; `None` where there are no servers.
pub(crate) async fn own_server() -> Option<Postgres> {
    if is_skipped(&PostgresFixture::new()) {
        return None;
    }
    let start = || Postgres::start(servers::Options::default());
    let started = tokio::task::spawn_blocking(start).await;
    Some(started.expect("no panic").expect("a server starts"))
}

/// Does something to a server that takes its time, while everything else goes on.
pub(crate) async fn with_server(
    mut server: Postgres,
    act: fn(&mut Postgres) -> anyhow::Result<()>,
) -> Postgres {
    let acted = tokio::task::spawn_blocking(move || act(&mut server).map(|()| server)).await;
    acted.expect("no panic").expect("the server obeys")
}
