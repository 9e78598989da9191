//! Tells other processes that jobs may have become claimable: after the commit, seldom, and
//! without anybody waiting for it.
//!
//! A transaction that notifies keeps all others that do so from committing at the same time, so a
//! notification is a transaction of its own, and a busy process sends one per [`EVERY`] however
//! much it commits: the first at once, all that come in the pause after it as one. Nothing here
//! fails an enqueue: what is not sent is found by polling.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::connect::{self, Begin, Form, Work};
use super::error::Fault;
use super::options::PostgresOptions;
use super::pools::Pool;
use super::statements::{Sql, Statements};
use super::wake::Names;
use crate::error::StoreError;

/// The shortest span between two notifications of one process. Beside the way to another machine
/// and a claim it is not noticed, and even on a slow disk the lock is then free most of the time.
pub(super) const EVERY: Duration = Duration::from_millis(15);

/// How long the server may take for a notification.
const SEND_MAX: Duration = Duration::from_secs(2);

/// How long the end of a store may wait for its last notification.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The way by which notifications are sent: the connections that are not a worker's own.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) options: PostgresOptions,
    statements: Arc<Statements>,
    begin: Begin,
    pool: Pool,
}

impl Line {
    pub(super) fn new(
        options: &PostgresOptions,
        statements: &Arc<Statements>,
        begin: &Begin,
        pool: &Pool,
    ) -> Self {
        let mut options = options.clone();
        options.statement_timeout = options.statement_timeout.min(SEND_MAX);
        Self {
            options,
            statements: Arc::clone(statements),
            begin: begin.clone(),
            pool: pool.clone(),
        }
    }

    /// Sends a notification in a transaction of its own.
    pub(super) async fn send(&self, channel: &str, payload: &str) -> Result<(), StoreError> {
        let how = (Form::of_one_statement(&self.options), &self.begin);
        let notification = Notification {
            sql: &self.statements.notify,
            channel,
            payload,
        };
        connect::run(&self.pool, &self.options, how, "notify", notification).await
    }
}

/// One notification.
pub(super) struct Notification<'a> {
    pub(super) sql: &'a Sql,
    pub(super) channel: &'a str,
    pub(super) payload: &'a str,
}

impl Work for Notification<'_> {
    type Done = ();

    async fn run(&self, conn: &mut PgConnection) -> Result<(), Fault> {
        let (channel, payload) = (self.channel.to_owned(), self.payload.to_owned());
        let query = self.sql.query().bind(channel).bind(payload);
        query.execute(&mut *conn).await?;
        Ok(())
    }
}

/// Sends what the store has to tell, by a task that starts with the first of it.
pub(super) struct Notifier {
    line: Line,
    names: Arc<Names>,
    closing: CancellationToken,
    task: Mutex<Option<Task>>,
}

struct Task {
    /// Holds one wish at most: what is wished for while one waits is the same.
    wishes: mpsc::Sender<()>,
    end: JoinHandle<()>,
}

impl Notifier {
    pub(super) fn new(line: Line, names: Arc<Names>, closing: CancellationToken) -> Self {
        Self {
            line,
            names,
            closing,
            task: Mutex::default(),
        }
    }

    /// Wishes for a notification that begins after this call.
    pub(super) fn ask(&self) {
        if self.closing.is_cancelled() {
            return;
        }
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |task: &Task| {
            let wish = task.wishes.try_send(());
            matches!(wish, Err(mpsc::error::TrySendError::Closed(())))
        };
        // A task is gone if it panicked, or if the runtime that it was started in has ended.
        if task.as_ref().is_none_or(is_gone) {
            *task = Some(self.start());
        }
    }

    /// Starts the task with one wish.
    fn start(&self) -> Task {
        let (wishes, wished) = mpsc::channel(1);
        let wish = wishes.try_send(());
        wish.expect("a new channel has room for one");
        let (line, names) = (self.line.clone(), Arc::clone(&self.names));
        let task = run(line, names, self.closing.clone(), wished);
        let seam = &self.line.options.seam;
        Task {
            wishes,
            end: seam.spawn(Box::pin(task)),
        }
    }

    /// Sends what was wished for and ends the task; waits no longer than [`FLUSH_MAX`].
    pub(super) async fn close(&self) {
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(Task { wishes, end }) = task else {
            return;
        };
        drop(wishes);
        let stop = end.abort_handle();
        let ended = connect::within(&*self.line.options.seam, FLUSH_MAX, "notify", end).await;
        if ended.is_err() {
            stop.abort();
        }
    }
}

/// Sends one notification per pause until nobody can wish for one any more.
async fn run(
    line: Line,
    names: Arc<Names>,
    closing: CancellationToken,
    mut wished: mpsc::Receiver<()>,
) {
    while wished.recv().await.is_some() {
        if let Err(error) = line.send(&names.jobs, &names.sender).await {
            tracing::debug!(%error, "other processes were not told of new jobs; they poll");
        }
        tokio::select! {
            biased;
            // What is still wished for is sent at once.
            () = closing.cancelled() => {}
            () = line.options.seam.sleep(EVERY) => {}
        }
    }
}
