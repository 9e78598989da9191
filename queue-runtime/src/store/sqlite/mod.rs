//! The embedded store: one SQLite file, no server.
//!
//! Every write goes through one [writer](writer) that shares a transaction, and so the wait for
//! the disk, among all that waits; it answers after the commit. Reads use a small pool beside it.
//! Leases are renewed over a connection of their own. Several processes may use one file: SQLite's
//! lock orders their writers, and every statement that changes a running job is guarded by its
//! lease token. The store's clock is SQLite's, so all of one machine; a test may give one that it
//! moves by hand.
//!
//! A store belongs to the tokio runtime that opened it, where its writer runs.

mod actions;
mod claim;
mod connect;
mod decide;
mod encode;
mod error;
mod heartbeat;
mod in_tx;
mod insert;
mod options;
mod rows;
pub mod schema;
mod settle;
mod statements;
#[cfg(test)]
mod tests;
mod wake;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use tokio::sync::{mpsc, oneshot, watch};

use self::encode::Prepared;
use self::error::{Fault, closed, store_error};
use self::heartbeat::SqliteHeartbeat;
pub use self::options::{SqliteOptions, Synchronous};
use self::rows::{Columns, json, limit};
use self::statements::{Sql, Statements};
use self::wake::Watch;
use self::writer::{Link, Op, Reply, WAITING_MAX, Writer};
use crate::error::{OpenError, StoreError, StoreErrorKind};
use crate::job::{
    Attempt, Claimed, JobId, JobRecord, JobState, JobType, NewJob, Settled, Settlement,
};
use crate::store::{
    Admin, Cancelling, ClaimRequest, Counts, Heartbeat, Inserted, Pruned, Replaying, Retention,
    Store, Versions, Wake, WakeListener,
};
use crate::time::Timestamp;

/// Connections that only read: looking at jobs is rare beside the writer's work.
const READERS_MAX: u32 = 4;

/// Connections for the application's transactions; only one of them can write at a time.
const TRANSACTIONS_MAX: u32 = 8;

/// A store in one SQLite file.
pub struct SqliteStore {
    options: SqliteOptions,
    statements: Arc<Statements>,
    store_id: String,
    ops: Mutex<Option<mpsc::Sender<Op>>>,
    readers: SqlitePool,
    transactions: SqlitePool,
    watch: Watch,
    commits: Arc<AtomicU64>,
    /// Closed when the writer has ended.
    writer: watch::Receiver<()>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.options.path)
            .field("store_id", &self.store_id)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, making it and its tables where they are missing, and starts the writer.
    ///
    /// # Errors
    /// If the path cannot hold a database, the file is none or may not be written, a setting is
    /// refused, or its tables are too new for this library; each says which.
    pub async fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        connect::check_path(&options)?;
        let statements = Arc::new(Statements::new());
        let mut conn = connect::connect(&options, &statements, "open").await?;
        schema::migrate(&mut conn, &statements).await?;
        let start = async {
            let row = statements.store_id.query().fetch_one(&mut conn).await?;
            let store_id: String = Columns::of(&row).take()?;
            Ok((store_id, Link::new(conn, &statements).await?))
        };
        let (store_id, link) = start
            .await
            .map_err(|fault: Fault| fault.into_store("open"))?;

        let wake = Arc::new(Wake::new());
        let commits = Arc::new(AtomicU64::new(0));
        let (ops, waiting) = mpsc::channel(WAITING_MAX);
        let (running, ended) = watch::channel(());
        let writer = Writer {
            options: options.clone(),
            statements: Arc::clone(&statements),
            ops: waiting,
            wake: Arc::clone(&wake),
            commits: Arc::clone(&commits),
            link,
        };
        // The writer ends when every sender is gone; `close` waits for that through `ended`.
        drop(options.seam.spawn(Box::pin(async move {
            writer.run().await;
            drop(running);
        })));
        Ok(Self {
            readers: connect::pool(&options, &statements, READERS_MAX),
            transactions: connect::pool(&options, &statements, TRANSACTIONS_MAX),
            watch: Watch::new(wake),
            ops: Mutex::new(Some(ops)),
            writer: ended,
            options,
            statements,
            store_id,
            commits,
        })
    }

    /// Opens the file of a pool that the application has; see [`SqliteOptions::from_pool`].
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn from_pool(pool: &SqlitePool) -> Result<Self, OpenError> {
        Self::open(SqliteOptions::from_pool(pool)).await
    }

    /// Returns how many transactions the writer has committed since the store was opened: fewer
    /// than operations, since those that wait together share one.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// The time by which to guess whether a job is due; the store's own clock decides.
    fn wall_clock(&self) -> Timestamp {
        self.options
            .clock
            .as_ref()
            .unwrap_or(&self.options.seam)
            .now()
    }

    fn manual_now(&self) -> Option<i64> {
        self.options
            .clock
            .as_ref()
            .map(|clock| clock.now().as_millis())
    }

    fn sender(&self) -> Option<mpsc::Sender<Op>> {
        self.ops
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Hands an operation to the writer and waits for its answer.
    async fn write<T>(
        &self,
        operation: &'static str,
        op: impl FnOnce(Reply<T>) -> Op,
    ) -> Result<T, StoreError> {
        let writer = self.sender().ok_or_else(|| closed(operation))?;
        let (reply, answer) = oneshot::channel();
        writer
            .send(op(reply))
            .await
            .map_err(|_| closed(operation))?;
        drop(writer);
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::new(
                StoreErrorKind::Unavailable,
                operation,
                "the writer of the store stopped before it answered; the outcome is unknown",
            ))
        })
    }

    /// Reads rows beside the writer.
    async fn read<T>(
        &self,
        operation: &'static str,
        sql: &Sql,
        bind: impl FnOnce(SqlQuery) -> SqlQuery,
        row: impl Fn(&SqliteRow) -> Result<T, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = bind(sql.query())
            .fetch_all(&self.readers)
            .await
            .map_err(|error| store_error(operation, error))?;
        rows.iter()
            .map(row)
            .collect::<Result<_, _>>()
            .map_err(|fault| fault.into_store(operation))
    }
}

type SqlQuery = sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

#[async_trait]
impl Store for SqliteStore {
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.wall_clock();
        let jobs = jobs.iter().map(|job| Prepared::new(job, now)).collect();
        self.write("insert", |reply| Op::Insert { jobs, reply })
            .await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        if request.limit == 0 {
            return Ok(Vec::new());
        }
        let op = |reply| Op::Exchange {
            settlements: Vec::new(),
            request: Some(request.clone()),
            operation: "claim",
            reply,
        };
        let (_, claimed) = self.write("claim", op).await?;
        Ok(claimed)
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let op = |reply| Op::Exchange {
            settlements: settlements.to_vec(),
            request: None,
            operation: "settle",
            reply,
        };
        let (settled, _) = self.write("settle", op).await?;
        Ok(settled)
    }

    async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        let op = |reply| Op::Exchange {
            settlements: settlements.to_vec(),
            request: Some(request.clone()),
            operation: "exchange",
            reply,
        };
        self.write("exchange", op).await
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        if self.sender().is_none() {
            return Err(closed("heartbeat"));
        }
        let options = self.options.clone();
        let heartbeat = SqliteHeartbeat::open(options, Arc::clone(&self.statements)).await?;
        Ok(Box::new(heartbeat))
    }

    async fn expired(&self, count: usize) -> Result<Vec<JobRecord>, StoreError> {
        let now = self.manual_now();
        self.read(
            "expired",
            &self.statements.expired,
            |query| query.bind(limit(count)).bind(now),
            rows::record,
        )
        .await
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        let asked = claim::Asked::new(request);
        let now = self.manual_now();
        let found = self
            .read(
                "next_due",
                &self.statements.next_due,
                |query| query.bind(asked.queues).bind(asked.job_types).bind(now),
                |row| Columns::of(row).take::<Option<i64>>(),
            )
            .await?;
        Ok(found
            .into_iter()
            .flatten()
            .next()
            .map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        if self.sender().is_none() {
            return Err(closed("migrate"));
        }
        let mut conn = connect::connect(&self.options, &self.statements, "migrate").await?;
        schema::migrate(&mut conn, &self.statements).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = self.manual_now();
        let read = self.read(
            "now",
            &self.statements.clock,
            |query| query.bind(now),
            |row| Columns::of(row).instant(),
        );
        read.await?.pop().ok_or_else(|| no_row("now"))
    }

    fn wakes(&self) -> WakeListener {
        self.watch.listen(&self.options.seam, self.sender())
    }

    async fn close(&self) {
        let ops = self
            .ops
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(ops);
        let mut writer = self.writer.clone();
        // Nothing is ever sent: this ends when the writer has dropped its side.
        while writer.changed().await.is_ok() {}
        self.readers.close().await;
        self.transactions.close().await;
    }
}

#[async_trait]
impl Admin for SqliteStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let sql = &self.statements.job;
        let mut found = self
            .read("job", sql, |query| query.bind(id.to_string()), rows::record)
            .await?;
        Ok(found.pop())
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        let sql = &self.statements.attempts;
        let bind = |query: SqlQuery| query.bind(id.to_string());
        self.read("attempts", sql, bind, rows::attempt).await
    }

    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError> {
        self.write("cancel", |reply| Op::Cancel { id, reply }).await
    }

    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError> {
        self.write("replay", |reply| Op::Replay { id, as_new, reply })
            .await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let rows = self
            .read(
                "counts",
                &self.statements.counts,
                |query| query,
                |row| {
                    let mut columns = Columns::of(row);
                    Ok((
                        columns.parsed::<JobState>("status")?,
                        columns.number::<u64>("count")?,
                    ))
                },
            )
            .await?;
        let mut counts = Counts::default();
        for (state, count) in rows {
            *counts.of_mut(state) += count;
        }
        Ok(counts)
    }

    async fn unknown_types(&self, known: &[JobType]) -> Result<Vec<(JobType, u64)>, StoreError> {
        let known: Vec<_> = known.iter().map(JobType::as_str).collect();
        let known = json(&known);
        self.read(
            "unknown_types",
            &self.statements.unknown_types,
            |query| query.bind(known),
            |row| {
                let mut columns = Columns::of(row);
                Ok((columns.parsed("job_type")?, columns.number("count")?))
            },
        )
        .await
    }

    async fn prune(&self, retention: &Retention, count: usize) -> Result<Pruned, StoreError> {
        let op = |reply| Op::Prune {
            retention: *retention,
            limit: count,
            reply,
        };
        self.write("prune", op).await
    }
}

#[async_trait]
impl Versions for SqliteStore {
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError> {
        let sql = &self.statements.newest_version;
        let bind = |query: SqlQuery| query.bind(cache_key.to_owned());
        let read = |row: &SqliteRow| Columns::of(row).number("version");
        let mut found = self.read("newest_version", sql, bind, read).await?;
        Ok(found.pop())
    }
}

fn no_row(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        operation,
        "SQLite gave no row where there is always one",
    )
}
