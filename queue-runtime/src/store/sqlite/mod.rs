//! The embedded store: one SQLite file, no server.
//!
//! Every write goes through one writer that shares a transaction, and so the wait for
//! the disk, among all that waits; it answers after the commit. Reads use a small pool beside it.
//! Leases are renewed over a connection of their own. Several processes may use one file: SQLite's
//! lock orders their writers, and every statement that changes a running job is guarded by its
//! lease token. The store's clock is SQLite's, so all of one machine; a test may give one that it
//! moves by hand.
//!
//! The writer has a thread of its own, so the database is never left locked while the
//! application's runtime is busy.

mod actions;
mod replay;
mod aside;
mod batch;
mod claim;
mod connect;
mod probe;
mod encode;
mod error;
mod file;
mod heartbeat;
mod in_tx;
mod insert;
mod ops;
mod options;
mod rows;
pub mod schema;
mod settle;
mod statements;
#[cfg(test)]
mod tests;
mod turn;
mod verbs;
mod verify;
mod waiting;
mod wake;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::sqlite::{SqlitePool, SqliteRow};
use tokio::sync::{mpsc, oneshot, watch};

use self::error::{Fault, closed, store_error};
use self::ops::{Op, Reply};
pub use self::options::{SqliteOptions, Synchronous};
use self::rows::Columns;
use self::statements::{Sql, SqlQuery, Statements};
use self::turn::Turn;
use self::writer::{Link, WAITING_MAX, Writer};
use crate::error::{OpenError, StoreError, StoreErrorKind};
use crate::store::Wake;
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
    wake: Arc<Wake>,
    turn: Arc<Turn>,
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

        let options = options.opened();
        let wake = Arc::new(Wake::new());
        let commits = Arc::new(AtomicU64::new(0));
        let (ops, waiting) = mpsc::channel(WAITING_MAX);
        let turn = Arc::new(Turn::default());
        let writer = Writer {
            options: options.clone(),
            statements: Arc::clone(&statements),
            ops: waiting,
            wake: Arc::clone(&wake),
            commits: Arc::clone(&commits),
            link,
            gathered: 0,
            turn: Arc::clone(&turn),
        };
        Ok(Self {
            readers: connect::pool(&options, &statements, READERS_MAX),
            transactions: connect::pool(&options, &statements, TRANSACTIONS_MAX),
            wake,
            turn,
            ops: Mutex::new(Some(ops)),
            writer: writer.start()?,
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
