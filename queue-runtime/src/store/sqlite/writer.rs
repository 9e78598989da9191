//! The one writer: takes everything that waits, does it in one transaction, and answers after
//! the commit.
//!
//! So concurrent producers and workers share a transaction and a wait for the disk, and inside
//! the process nobody ever waits for SQLite's lock. An operation is answered only once it is
//! stored; when its caller is gone before its turn, it is left out.
//!
//! It has a thread of its own: on the application's runtime, a handler that blocks its thread
//! could stop the writer between two statements, with the database locked against the heartbeat
//! and against every other process. When the connection is lost, the writer opens another,
//! waiting longer after each failure, and answers `Unavailable` meanwhile.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor};
use tokio::sync::{mpsc, watch};

use super::batch::Batch;
use super::error::Fault;
use super::ops::Op;
use super::options::SqliteOptions;
use super::rows::Columns;
use super::statements::Statements;
use super::turn::Turn;
use super::wake::Look;
use super::{aside, connect};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::Wake;

/// Operations that share one transaction at most: bounds how long its first one waits.
const BATCH_MAX: usize = 512;

/// Rows that share one transaction at most, unless one operation alone has more: bounds how long
/// the database is locked for others, the heartbeat among them.
const BATCH_ROWS_MAX: usize = 4_096;

/// Operations that may wait for the writer; more wait at the door.
pub(super) const WAITING_MAX: usize = 4 * BATCH_MAX;

/// Times the writer lets other threads go first while fewer operations wait than the last batch
/// had: the callers that were just answered need a moment to come back.
const GATHER_ROUNDS_MAX: usize = 100;

/// The pause after the first failure to open a connection; doubles up to [`REOPEN_MAX`].
const REOPEN_MIN: Duration = Duration::from_millis(50);

/// The longest pause between two tries to open a connection.
const REOPEN_MAX: Duration = Duration::from_secs(5);

/// The writer's task.
pub(super) struct Writer {
    pub(super) options: SqliteOptions,
    pub(super) statements: Arc<Statements>,
    pub(super) ops: mpsc::Receiver<Op>,
    pub(super) wake: Arc<Wake>,
    pub(super) commits: Arc<AtomicU64>,
    pub(super) link: Link,
    pub(super) turn: Arc<Turn>,
    /// Operations in the last batch.
    pub(super) gathered: usize,
}

/// The writer's connection, or when to try for another.
pub(super) struct Link {
    conn: Option<SqliteConnection>,
    failures: u32,
    next_try: Duration,
    /// What the connection has seen of the commits of others.
    data_version: i64,
    /// Whether the last transaction found no space.
    is_full: bool,
}

impl Link {
    /// Starts with an open connection.
    pub(super) async fn new(
        mut conn: SqliteConnection,
        statements: &Statements,
    ) -> Result<Self, Fault> {
        Ok(Self {
            data_version: data_version(&mut conn, statements).await?,
            conn: Some(conn),
            failures: 0,
            next_try: Duration::ZERO,
            is_full: false,
        })
    }
}

async fn data_version(conn: &mut SqliteConnection, statements: &Statements) -> Result<i64, Fault> {
    let row = statements.data_version.query().fetch_one(conn).await?;
    Columns::of(&row).take()
}

impl Writer {
    /// Starts the writer on its thread; the receiver hears when it has ended.
    pub(super) fn start(self) -> Result<watch::Receiver<()>, StoreError> {
        let (running, ended) = watch::channel(());
        let seam = Arc::clone(&self.options.seam);
        let work = async move {
            self.run().await;
            drop(running);
        };
        match seam.spawn_apart("queue-writer", Box::pin(work)) {
            // It ends when every sender is gone; `close` waits for that through `ended`.
            Ok(()) => Ok(ended),
            Err(error) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "open",
                "the system refuses a thread for the writer of the store",
            )
            .caused_by(error)),
        }
    }

    /// Works until every handle of the store is gone or closed, and all they sent is done.
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut look = Look::default();
        loop {
            look.arm(&self.wake, &self.options.seam);
            tokio::select! {
                // First, or a busy writer would never look; it is ready at most every pause.
                biased;
                // Losing only means that the pause goes on in the next round.
                () = look.wait() => self.peek().await,
                received = self.ops.recv_many(&mut batch, BATCH_MAX) => {
                    if received == 0 {
                        break;
                    }
                    self.take(&mut batch).await;
                }
            }
        }
        if let Some(conn) = self.link.conn.take() {
            // Nothing is lost if this fails: what was answered is committed.
            if let Err(error) = conn.close().await {
                tracing::warn!(%error, "the store's connection did not close cleanly");
            }
        }
    }

    /// Does what has arrived.
    async fn take(&mut self, batch: &mut Vec<Op>) {
        self.gather(batch);
        #[cfg(test)]
        if batch.iter().any(|op| matches!(op, Op::Break)) {
            self.link.conn = None;
        }
        batch.retain(Op::is_wanted);
        if batch.is_empty() {
            return;
        }
        self.gathered = batch.len();
        while !batch.is_empty() {
            self.turn.give_way(&*self.options.seam).await;
            let ops = batch.drain(..fitting(batch)).collect();
            // A panic is a bug of ours: the callers hear `Unavailable` as their replies drop,
            // and a connection in an unknown state is not used again.
            let served = AssertUnwindSafe(self.serve(ops)).catch_unwind().await;
            if served.is_err() {
                tracing::error!("the writer of the store panicked and goes on");
                self.link.conn = None;
            }
        }
    }

    /// Lets the callers that were just answered join this batch: without it the first of them
    /// to come back would have a transaction of its own, and the others wait for that.
    fn gather(&mut self, batch: &mut Vec<Op>) {
        for _ in 0..GATHER_ROUNDS_MAX {
            if batch.len() >= self.gathered.min(BATCH_MAX) {
                break;
            }
            std::thread::yield_now();
            while batch.len() < BATCH_MAX
                && let Ok(op) = self.ops.try_recv()
            {
                batch.push(op);
            }
        }
    }

    /// Wakes the listeners if another connection has committed since the last look. Commits of
    /// the writer itself do not count: SQLite does not show them to the connection that made
    /// them.
    async fn peek(&mut self) {
        let Some(conn) = &mut self.link.conn else {
            return;
        };
        match data_version(conn, &self.statements).await {
            Ok(version) => {
                if std::mem::replace(&mut self.link.data_version, version) != version {
                    self.wake.notify();
                }
            }
            Err(fault) if fault.breaks_connection() => self.link.conn = None,
            // A missed look is made up for by the next one.
            Err(_) => {}
        }
    }

    /// Does a batch and answers it.
    async fn serve(&mut self, ops: Vec<Op>) {
        if let Err(error) = self.reopen().await {
            for op in ops {
                let error = StoreError::new(error.kind(), op.name(), error.to_string());
                op.refuse(error);
            }
            return;
        }
        let Some(conn) = self.link.conn.as_mut() else {
            return;
        };
        if std::mem::take(&mut self.link.is_full) {
            make_space(conn).await;
        }
        let mut batch = Batch {
            conn,
            statements: &self.statements,
            clock: self.options.clock.as_ref().map(|clock| clock.now()),
            wake: false,
            set_aside: Vec::new(),
        };
        let done = batch.run(&ops).await;
        if done.is_ok()
            && let Some(file) = self.options.file.as_ref().filter(|file| file.is_gone())
        {
            // What was just committed is in a file that nobody will open again.
            self.link.conn = None;
            for op in ops {
                let error = file.gone(op.name());
                op.refuse(error);
            }
            return;
        }
        match done {
            Ok(answers) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                // Before the answers, so that whoever has one finds the hint given.
                if batch.wake {
                    self.wake.notify();
                }
                aside::tell(&batch.set_aside);
                for (op, answer) in ops.into_iter().zip(answers) {
                    let name = op.name();
                    op.answer(answer.map_err(|fault| fault.into_store(name)));
                }
            }
            Err(fault) => {
                self.link.is_full = fault.is_full();
                if fault.breaks_connection() {
                    self.link.conn = None;
                }
                for op in ops {
                    let error = fault.to_store(op.name());
                    op.refuse(error);
                }
            }
        }
    }

    async fn connect(&self) -> Result<Link, StoreError> {
        let conn = connect::connect(&self.options, &self.statements, "connect").await?;
        let link = Link::new(conn, &self.statements).await;
        link.map_err(|fault| fault.into_store("connect"))
    }

    /// Opens another connection if there is none and it is time for another try.
    async fn reopen(&mut self) -> Result<(), StoreError> {
        if self.link.conn.is_some() {
            return Ok(());
        }
        self.options.verify_file("connect")?;
        if self.options.seam.elapsed() < self.link.next_try {
            return Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "connect",
                "the connection to the database is lost; it is tried again soon",
            ));
        }
        match self.connect().await {
            Ok(link) => {
                self.link = link;
                // Nobody knows what was committed meanwhile.
                self.wake.notify();
                Ok(())
            }
            Err(error) => {
                let pause = REOPEN_MIN.saturating_mul(1 << self.link.failures.min(16));
                self.link.failures += 1;
                // From now on, since the try itself may have taken longer than the pause.
                self.link.next_try = self.options.seam.elapsed() + pause.min(REOPEN_MAX);
                Err(StoreError::new(
                    StoreErrorKind::Unavailable,
                    "connect",
                    error.to_string(),
                ))
            }
        }
    }
}

/// Empties the write-ahead log after a transaction found no space: on a small disk it may itself
/// be what fills it, and the checkpoints that would empty it follow successful commits only.
async fn make_space(conn: &mut SqliteConnection) {
    if let Err(error) = conn.execute("pragma wal_checkpoint(truncate)").await {
        tracing::debug!(%error, "the write-ahead log could not be emptied");
    }
}

/// How many operations at the head of a batch fit into one transaction.
fn fitting(batch: &[Op]) -> usize {
    let mut rows = 0_usize;
    let fits = |op: &&Op| {
        rows = rows.saturating_add(op.rows());
        rows <= BATCH_ROWS_MAX
    };
    batch.iter().take_while(fits).count().max(1)
}
