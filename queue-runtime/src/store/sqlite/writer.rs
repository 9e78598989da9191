//! The one writer: takes everything that waits, does it in one transaction, and answers after
//! the commit.
//!
//! So concurrent producers and workers share a transaction and a wait for the disk, and inside
//! the process nobody ever waits for SQLite's lock. An operation is answered only once it is
//! stored; when its caller is gone before its turn, it is left out.
//!
//! One bad operation does not hurt the others: a batch runs without savepoints first, since two
//! more calls per operation would cost more than the work; if anything fails, all of it is rolled
//! back and runs again with a savepoint around each operation. When the connection is lost, the
//! writer opens another, waiting longer after each failure, and answers `Unavailable` meanwhile.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor};
use tokio::sync::{mpsc, oneshot};

use super::encode::Prepared;
use super::error::Fault;
use super::options::SqliteOptions;
use super::rows::Columns;
use super::statements::Statements;
use super::{actions, claim, connect, insert, settle};
use crate::error::StoreError;
use crate::job::{Claimed, JobId, Settled, Settlement};
use crate::store::{Cancelling, ClaimRequest, Inserted, Pruned, Replaying, Retention, Wake};
use crate::time::Timestamp;

/// Operations that share one transaction at most: bounds how long its first one waits.
const BATCH_MAX: usize = 512;

/// Operations that may wait for the writer; more wait at the door.
pub(super) const WAITING_MAX: usize = 4 * BATCH_MAX;

/// Times the writer lets others go first while operations keep arriving.
const GATHER_ROUNDS_MAX: usize = 4;

/// The pause after the first failure to open a connection; doubles up to [`REOPEN_MAX`].
const REOPEN_MIN: Duration = Duration::from_millis(50);

/// The longest pause between two tries to open a connection.
const REOPEN_MAX: Duration = Duration::from_secs(5);

/// Where the answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer is asked to do.
pub(super) enum Op {
    /// Stores jobs.
    Insert {
        jobs: Vec<Prepared>,
        reply: Reply<Vec<Inserted>>,
    },
    /// Settles, then claims; either may be missing.
    Exchange {
        settlements: Vec<Settlement>,
        request: Option<ClaimRequest>,
        operation: &'static str,
        reply: Reply<(Vec<Settled>, Vec<Claimed>)>,
    },
    /// Calls a job off.
    Cancel { id: JobId, reply: Reply<Cancelling> },
    /// Lets a job run again.
    Replay {
        id: JobId,
        as_new: bool,
        reply: Reply<Replaying>,
    },
    /// Removes what is old.
    Prune {
        retention: Retention,
        limit: usize,
        reply: Reply<Pruned>,
    },
    /// Looks whether another connection has committed, and wakes the listeners if so.
    Peek,
    /// Loses the connection, as a fault would.
    #[cfg(test)]
    Break,
}

/// What one operation came to.
enum Answer {
    Inserted(Vec<Inserted>),
    Exchanged(Vec<Settled>, Vec<Claimed>),
    Cancelled(Cancelling),
    Replayed(Replaying),
    Pruned(Pruned),
}

impl Op {
    fn name(&self) -> &'static str {
        match self {
            Self::Insert { .. } => "insert",
            Self::Exchange { operation, .. } => operation,
            Self::Cancel { .. } => "cancel",
            Self::Replay { .. } => "replay",
            Self::Prune { .. } => "prune",
            Self::Peek => "peek",
            #[cfg(test)]
            Self::Break => "break",
        }
    }

    /// Says whether somebody still waits for the answer.
    fn is_wanted(&self) -> bool {
        match self {
            Self::Insert { reply, .. } => !reply.is_closed(),
            Self::Exchange { reply, .. } => !reply.is_closed(),
            Self::Cancel { reply, .. } => !reply.is_closed(),
            Self::Replay { reply, .. } => !reply.is_closed(),
            Self::Prune { reply, .. } => !reply.is_closed(),
            Self::Peek => false,
            #[cfg(test)]
            Self::Break => false,
        }
    }

    /// Answers; a caller that is gone by now does not hear it.
    fn answer(self, answer: Result<Answer, StoreError>) {
        match (self, answer) {
            (Self::Insert { reply, .. }, Ok(Answer::Inserted(inserted))) => {
                let _ = reply.send(Ok(inserted));
            }
            (Self::Exchange { reply, .. }, Ok(Answer::Exchanged(settled, claimed))) => {
                let _ = reply.send(Ok((settled, claimed)));
            }
            (Self::Cancel { reply, .. }, Ok(Answer::Cancelled(cancelling))) => {
                let _ = reply.send(Ok(cancelling));
            }
            (Self::Replay { reply, .. }, Ok(Answer::Replayed(replaying))) => {
                let _ = reply.send(Ok(replaying));
            }
            (Self::Prune { reply, .. }, Ok(Answer::Pruned(pruned))) => {
                let _ = reply.send(Ok(pruned));
            }
            (op, Err(error)) => op.refuse(error),
            // A mismatch drops the reply, which its caller hears as unavailable.
            (_, Ok(_)) => {}
        }
    }

    fn refuse(self, error: StoreError) {
        match self {
            Self::Insert { reply, .. } => drop(reply.send(Err(error))),
            Self::Exchange { reply, .. } => drop(reply.send(Err(error))),
            Self::Cancel { reply, .. } => drop(reply.send(Err(error))),
            Self::Replay { reply, .. } => drop(reply.send(Err(error))),
            Self::Prune { reply, .. } => drop(reply.send(Err(error))),
            Self::Peek => {}
            #[cfg(test)]
            Self::Break => {}
        }
    }
}

/// The writer's task.
pub(super) struct Writer {
    pub(super) options: SqliteOptions,
    pub(super) statements: Arc<Statements>,
    pub(super) ops: mpsc::Receiver<Op>,
    pub(super) wake: Arc<Wake>,
    pub(super) commits: Arc<AtomicU64>,
    pub(super) link: Link,
}

/// The writer's connection, or when to try for another.
pub(super) struct Link {
    conn: Option<SqliteConnection>,
    failures: u32,
    next_try: Duration,
    /// What the connection has seen of the commits of others.
    data_version: i64,
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
        })
    }
}

async fn data_version(conn: &mut SqliteConnection, statements: &Statements) -> Result<i64, Fault> {
    let row = statements.data_version.query().fetch_one(conn).await?;
    Columns::of(&row).take()
}

impl Writer {
    /// Works until every handle of the store is gone or closed, and all they sent is done.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while self.ops.recv_many(&mut batch, BATCH_MAX).await > 0 {
            self.gather(&mut batch).await;
            self.peek_or_break(&mut batch).await;
            batch.retain(Op::is_wanted);
            if batch.is_empty() {
                continue;
            }
            let ops = std::mem::take(&mut batch);
            // A panic is a bug of ours: the callers hear `Unavailable` as their replies drop, and
            // a connection in an unknown state is not used again.
            if AssertUnwindSafe(self.serve(ops))
                .catch_unwind()
                .await
                .is_err()
            {
                tracing::error!("the writer of the store panicked and goes on");
                self.link.conn = None;
            }
        }
        if let Some(conn) = self.link.conn.take() {
            // Nothing is lost if this fails: what was answered is committed.
            if let Err(error) = conn.close().await {
                tracing::warn!(%error, "the store's connection did not close cleanly");
            }
        }
    }

    /// Lets the callers that were just answered, and others, join this batch: without it the
    /// first of them to run would have a transaction of its own.
    async fn gather(&mut self, batch: &mut Vec<Op>) {
        for _ in 0..GATHER_ROUNDS_MAX {
            let before = batch.len();
            tokio::task::yield_now().await;
            while batch.len() < BATCH_MAX
                && let Ok(op) = self.ops.try_recv()
            {
                batch.push(op);
            }
            if batch.len() == before {
                break;
            }
        }
    }

    async fn peek_or_break(&mut self, batch: &mut [Op]) {
        #[cfg(test)]
        if batch.iter().any(|op| matches!(op, Op::Break)) {
            self.lose_connection();
        }
        if batch.iter().any(|op| matches!(op, Op::Peek)) {
            self.peek().await;
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
            Err(fault) if fault.breaks_connection() => self.lose_connection(),
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
        let mut batch = Batch {
            conn,
            statements: &self.statements,
            clock: self.options.clock.as_ref().map(|clock| clock.now()),
            wake: false,
        };
        match batch.run(&ops).await {
            Ok(answers) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                // Before the answers, so that whoever has one finds the hint given.
                if batch.wake {
                    self.wake.notify();
                }
                for (op, answer) in ops.into_iter().zip(answers) {
                    let name = op.name();
                    op.answer(answer.map_err(|fault| fault.into_store(name)));
                }
            }
            Err(fault) => {
                if fault.breaks_connection() {
                    self.lose_connection();
                }
                for op in ops {
                    let error = fault.to_store(op.name());
                    op.refuse(error);
                }
            }
        }
    }

    fn lose_connection(&mut self) {
        self.link.conn = None;
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
        let now = self.options.seam.elapsed();
        if now < self.link.next_try {
            return Err(StoreError::new(
                crate::error::StoreErrorKind::Unavailable,
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
                self.link.next_try = now + pause.min(REOPEN_MAX);
                Err(StoreError::new(
                    crate::error::StoreErrorKind::Unavailable,
                    "connect",
                    error.to_string(),
                ))
            }
        }
    }
}

/// One transaction's work.
struct Batch<'a> {
    conn: &'a mut SqliteConnection,
    statements: &'a Statements,
    /// The time on a clock moved by hand, if there is one.
    clock: Option<Timestamp>,
    /// Whether a job became claimable.
    wake: bool,
}

impl Batch<'_> {
    /// Does all operations in one transaction. An error means that none of them happened.
    async fn run(&mut self, ops: &[Op]) -> Result<Vec<Result<Answer, Fault>>, Fault> {
        let now = self.begin().await?;
        let answers = match self.together(now, ops).await {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(fault) if fault.hits_everybody() || ops.len() == 1 => {
                self.rollback().await?;
                return Err(fault);
            }
            Err(_) => {
                self.rollback().await?;
                self.wake = false;
                let now = self.begin().await?;
                self.one_by_one(now, ops).await?
            }
        };
        if let Err(error) = self.conn.execute("commit").await {
            // A failed commit may leave the transaction open (busy) or not (full, I/O).
            let _ = self.conn.execute("rollback").await;
            return Err(Fault::Sql(error));
        }
        Ok(answers)
    }

    async fn begin(&mut self) -> Result<Timestamp, Fault> {
        let row = self
            .statements
            .begin
            .query()
            .bind(self.clock.map(Timestamp::as_millis))
            .fetch_one(&mut *self.conn)
            .await?;
        Columns::of(&row).instant()
    }

    /// Some faults end the transaction by themselves, so there may be none to roll back.
    async fn rollback(&mut self) -> Result<(), Fault> {
        match self.conn.execute("rollback").await {
            Ok(_) => Ok(()),
            Err(error) if error.to_string().contains("no transaction is active") => Ok(()),
            Err(error) => Err(Fault::Sql(error)),
        }
    }

    /// Does all operations, the inserts of all as one and the settlements of all as one: nobody
    /// was answered yet, so any order is the order in which they happened.
    async fn together(&mut self, now: Timestamp, ops: &[Op]) -> Result<Vec<Answer>, Fault> {
        let jobs: Vec<&Prepared> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Insert { jobs, .. } => Some(jobs),
                _ => None,
            })
            .flatten()
            .collect();
        let settlements: Vec<&Settlement> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Exchange { settlements, .. } => Some(settlements),
                _ => None,
            })
            .flatten()
            .collect();
        let inserted = insert::insert(self.conn, self.statements, Some(now), &jobs).await?;
        let any_new = inserted
            .iter()
            .zip(&jobs)
            .any(|(answer, job)| job.due && matches!(answer, Inserted::New { .. }));
        let (settled, freed) =
            settle::settle(self.conn, self.statements, now, &settlements).await?;
        self.wake |= any_new || freed;
        let mut inserted = inserted.into_iter();
        let mut settled = settled.into_iter();
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            answers.push(match op {
                Op::Insert { jobs, .. } => {
                    Answer::Inserted(inserted.by_ref().take(jobs.len()).collect())
                }
                Op::Exchange {
                    settlements,
                    request,
                    ..
                } => {
                    let settled = settled.by_ref().take(settlements.len()).collect();
                    let claimed = match request {
                        Some(request) => {
                            claim::claim(self.conn, self.statements, now, request).await?
                        }
                        None => Vec::new(),
                    };
                    Answer::Exchanged(settled, claimed)
                }
                other => self.single(now, other).await?,
            });
        }
        Ok(answers)
    }

    /// Does an operation that no other shares a statement with.
    async fn single(&mut self, now: Timestamp, op: &Op) -> Result<Answer, Fault> {
        let (conn, statements) = (&mut *self.conn, self.statements);
        match op {
            Op::Cancel { id, .. } => {
                let (answer, wake) = actions::cancel(conn, statements, now, *id).await?;
                self.wake |= wake;
                Ok(Answer::Cancelled(answer))
            }
            Op::Replay { id, as_new, .. } => {
                let answer = actions::replay(conn, statements, now, *id, *as_new).await?;
                self.wake |= answer == Replaying::Replayed;
                Ok(Answer::Replayed(answer))
            }
            Op::Prune {
                retention, limit, ..
            } => {
                let pruned = actions::prune(conn, statements, now, retention, *limit).await?;
                Ok(Answer::Pruned(pruned))
            }
            _ => Err(Fault::Row(
                "an operation came to the wrong place".to_owned(),
            )),
        }
    }

    /// Does each operation in a savepoint of its own, so that a bad one hurts nobody else.
    async fn one_by_one(
        &mut self,
        now: Timestamp,
        ops: &[Op],
    ) -> Result<Vec<Result<Answer, Fault>>, Fault> {
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            self.conn.execute("savepoint queue_operation").await?;
            let answer = self.together(now, std::slice::from_ref(op)).await;
            match answer {
                Ok(mut done) => {
                    self.conn.execute("release queue_operation").await?;
                    answers.extend(done.pop().map(Ok));
                }
                Err(fault) if fault.hits_everybody() => {
                    self.rollback().await?;
                    return Err(fault);
                }
                Err(fault) => {
                    self.conn.execute("rollback to queue_operation").await?;
                    self.conn.execute("release queue_operation").await?;
                    answers.push(Err(fault));
                }
            }
        }
        Ok(answers)
    }
}
