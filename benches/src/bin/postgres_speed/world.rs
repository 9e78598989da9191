//! The server, the schemas of both sides, and waiting jobs.

use std::sync::Arc;

use anyhow::{Context, Result};
use queue_benches::disk::Disk;
use queue_runtime::job::{
    Dedupe, DedupeUntil, Due, JobId, JobType, NewJob, OnDuplicate, QueueName,
};
use queue_runtime::store::Store;
use queue_runtime::store::postgres::{PostgresOptions, PostgresStore};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Executor};
use uuid::Uuid;
use xtask::servers::postgres::{Options, Postgres};

use crate::raw;

/// The schema of the store.
const SCHEMA: &str = "postgres_speed_store";

/// What the connections of the store are called in the server's list of processes.
pub(crate) const STORE: &str = "postgres_speed store";

/// What the connections of the bare loop are called there.
pub(crate) const RAW: &str = "postgres_speed raw";

/// The type of all jobs.
pub(crate) const JOB_TYPE: &str = "send_receipt";

/// One job in so many has a dedupe key.
const KEYED: u128 = 10;

/// Jobs that are inserted at once.
pub(crate) const BULK: usize = 1_000;

/// Both sides may plan by their indexes only, so that neither keeps a plan that was made while
/// its table was empty. The store asks for this by itself.
const PLANNING: [(&str, &str); 3] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
];

/// A server, our own or one that was named.
pub(crate) struct World {
    url: String,
    /// Ours ends with this value.
    server: Option<Postgres>,
}

impl World {
    /// Starts a durable server, unless a URL names one.
    pub(crate) fn open(url: Option<String>) -> Result<Self> {
        let (url, server) = match url {
            Some(url) => (url, None),
            None => {
                let server = Postgres::start(Options {
                    durable: true,
                    ..Options::default()
                })?;
                (server.url(), Some(server))
            }
        };
        Ok(Self { url, server })
    }

    /// Says what is measured on: the server, and what a commit waits for on our disk.
    pub(crate) async fn describe(&self) -> Result<String> {
        let mut conn = self.connect(RAW).await?;
        let version: String = sqlx::query_scalar("select version()")
            .fetch_one(&mut conn)
            .await?;
        let short = version.split(" on ").next().unwrap_or_default();
        let Some(_) = &self.server else {
            return Ok(format!("{short}, named by --database-url"));
        };
        let disk = Disk::find()?;
        let (page, place) = (disk.sync_span()?, disk.describe());
        Ok(format!("{short}, a page on {place} in {page:.1?}"))
    }

    /// Opens a connection under a name.
    pub(crate) async fn connect(&self, name: &str) -> Result<PgConnection> {
        let options: PgConnectOptions = self.url.parse()?;
        let options = options
            .application_name(name)
            .options(PLANNING)
            .disable_statement_logging();
        Ok(options.connect().await?)
    }

    /// Makes both schemas anew and opens the store.
    pub(crate) async fn fresh(&self, connections: Option<u32>) -> Result<Arc<PostgresStore>> {
        self.clear().await?;
        let mut conn = self.connect(RAW).await?;
        conn.execute("create schema postgres_speed").await?;
        conn.execute(include_str!("sql/migrations/0001_tables.sql"))
            .await?;
        conn.close().await?;
        self.store(connections).await
    }

    /// Opens a store; how many connections it may have is its own default unless said.
    pub(crate) async fn store(&self, connections: Option<u32>) -> Result<Arc<PostgresStore>> {
        let sign = if self.url.contains('?') { '&' } else { '?' };
        let name = STORE.replace(' ', "%20");
        let url = format!("{}{sign}application_name={name}", self.url);
        let mut options = PostgresOptions::new(url)?.schema(SCHEMA)?.migrate(true);
        if let Some(count) = connections {
            options = options.connections(count)?;
        }
        Ok(Arc::new(PostgresStore::open(options).await?))
    }

    /// Fills both sides with the same jobs. Afterwards the planner knows the tables, and a
    /// checkpoint is over, so that no drain pays for what was before it.
    pub(crate) async fn fill(&self, store: &PostgresStore, jobs: usize) -> Result<()> {
        let mut conn = self.connect(RAW).await?;
        let numbers: Vec<u128> = (0..jobs as u128).collect();
        for bulk in numbers.chunks(BULK) {
            let new: Vec<NewJob> = bulk.iter().map(|number| keyed(*number)).collect();
            store.insert(&new).await?;
            raw::insert(&mut conn, &new).await?;
        }
        conn.execute("vacuum analyze").await?;
        conn.execute("checkpoint").await?;
        conn.close().await?;
        Ok(())
    }

    /// Opens a transaction that does nothing and keeps the server from removing what is deleted
    /// from now on.
    pub(crate) async fn hold_snapshot(&self) -> Result<PgConnection> {
        let mut conn = self.connect(RAW).await?;
        conn.execute("begin isolation level repeatable read")
            .await?;
        conn.execute("select count(*) from pg_class").await?;
        Ok(conn)
    }

    /// Leaves nothing behind.
    pub(crate) async fn clear(&self) -> Result<()> {
        let mut conn = self.connect(RAW).await?;
        conn.execute("drop schema if exists postgres_speed, postgres_speed_store cascade")
            .await
            .context("drop the schemas of the run before")?;
        conn.close().await?;
        Ok(())
    }
}

/// A plain job; numbers make ids in order, as a producer does.
pub(crate) fn plain(number: u128) -> NewJob {
    const FIRST: u128 = 0x0190_0000_0000_7000_8000_0000_0000_0000;
    NewJob {
        id: JobId::from_uuid(Uuid::from_u128(FIRST + number)),
        job_type: JobType::new(JOB_TYPE).expect("a valid name"),
        queue: QueueName::default_queue(),
        payload: format!(
            r#"{{"user_id":{number},"email":"ada.lovelace@example.org","subject":"your receipt"}}"#
        ),
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

/// A job that has a dedupe key if its number says so.
fn keyed(number: u128) -> NewJob {
    let dedupe = number.is_multiple_of(KEYED).then(|| Dedupe {
        key: format!("user {number}"),
        until: DedupeUntil::Finished,
        on_duplicate: OnDuplicate::Keep,
    });
    NewJob {
        dedupe,
        ..plain(number)
    }
}
