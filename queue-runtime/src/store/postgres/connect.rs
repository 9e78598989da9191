//! Connections and transactions, each with the same promises and a bound on how long it may take.
//!
//! No connection keeps anything between two transactions but what every one of ours is opened with:
//! the settings of a transaction are made by the statement that begins it, so that it works behind a
//! pooler that changes servers in between.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Error as SqlxError, Executor, Row, Transaction,
};

use super::error::{Fault, ends_connection, is_pooled, store_error};
use super::free;
use super::options::{PostgresOptions, SEARCH_PATH};
use super::pools::Pool;
use crate::error::{StoreError, StoreErrorKind};
use crate::seam::Seam;

/// How long opening a connection may take.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long to wait for a free connection of the pool.
pub(super) const ACQUIRE_MAX: Duration = Duration::from_secs(5);

/// How long a transaction may take beyond what its statements may: the server is asked to give
/// up first, and only a server that does not answer at all runs into this.
const BEYOND: Duration = Duration::from_secs(5);

/// How often a transaction is begun anew after others were in its way.
const ROUNDS_MAX: u32 = 8;

/// Opens a connection of its own, in the runtime of the caller.
pub(super) async fn connect(
    options: &PostgresOptions,
    operation: &'static str,
) -> Result<PgConnection, StoreError> {
    let connect = options.connect_options();
    within(&*options.seam, CONNECT_MAX, operation, async {
        connect
            .connect()
            .await
            .map_err(|error| explained(options, operation, error))
    })
    .await
    .map_err(|error| of_server(options, error))?
}

/// Checks that a connection has the settings that it was opened with. A pooler may leave them out
/// without a word; our prepared statements would then meet those of others on its servers, and
/// one be carried out for another.
pub(super) async fn verify_settings(
    conn: &mut PgConnection,
    options: &PostgresOptions,
) -> Result<(), StoreError> {
    if options.behind_pooler {
        return Ok(());
    }
    let read = async {
        let row = conn.fetch_one("show search_path").await?;
        row.try_get::<String, _>(0)
    };
    match read.await {
        Ok(path) if path == SEARCH_PATH => Ok(()),
        Ok(_) => Err(is_pooled("open")),
        Err(error) => Err(store_error("open", error)),
    }
}

/// Checks that the database can hold every text: in one of another encoding an error text or a payload
/// with a letter that it lacks could not be stored.
pub(super) async fn verify_encoding(conn: &mut PgConnection) -> Result<(), StoreError> {
    let read = async {
        let row = conn.fetch_one("show server_encoding").await?;
        row.try_get::<String, _>(0)
    };
    match read.await {
        Ok(encoding) if ["UTF8", "SQL_ASCII"].contains(&encoding.as_str()) => Ok(()),
        Ok(encoding) => Err(StoreError::new(
            StoreErrorKind::Unsupported,
            "open",
            format!(
                "the database's encoding is {encoding}, which lacks letters that a payload or an \
                 error text may have. Create a database with `encoding 'UTF8'`"
            ),
        )),
        Err(error) => Err(store_error("open", error)),
    }
}

/// Makes a pool for one connection that is never replaced, without opening it yet.
pub(super) fn pool_of_one(options: &PostgresOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(CONNECT_MAX)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(options.connect_options())
}

/// What begins a transaction: read committed whatever the database's default is, and settings that
/// end with the transaction. A database that is read-only by default stays so: that is how
/// somebody fences it.
#[derive(Clone, Debug)]
pub(super) struct Begin(Arc<str>);

impl Begin {
    pub(super) fn new(options: &PostgresOptions) -> Self {
        Self::of(options, "read committed", options.lock_timeout)
    }

    /// Begins what gives up waiting for a row after a moment, to be done in another way.
    pub(super) fn brief(options: &PostgresOptions) -> Self {
        let lock_timeout = options.lock_timeout.min(free::WAIT_MAX);
        Self::of(options, "read committed", lock_timeout)
    }

    /// Begins what only reads, and whose statements all see the same moment.
    pub(super) fn snapshot(options: &PostgresOptions) -> Self {
        Self::of(options, "repeatable read read only", options.lock_timeout)
    }

    fn of(options: &PostgresOptions, isolation: &str, lock_timeout: Duration) -> Self {
        let lock = ms(lock_timeout);
        let statement = ms(options.statement_timeout);
        let mut text = format!(
            "begin isolation level {isolation}; \
             set local lock_timeout = {lock}; \
             set local statement_timeout = {statement}"
        );
        if options.behind_pooler {
            // A connection of ours has it from its start.
            text.push_str("; set local search_path = ");
            text.push_str(SEARCH_PATH);
        }
        Self(text.into())
    }

    /// Begins on a connection.
    pub(super) async fn on<'c>(
        &self,
        conn: &'c mut PgConnection,
    ) -> Result<Transaction<'c, sqlx::Postgres>, SqlxError> {
        conn.begin_with(AssertSqlSafe(Arc::clone(&self.0))).await
    }
}

/// A timeout as Postgres takes it; it counts milliseconds in 31 bits, and zero means none.
pub(super) fn ms(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_millis())
        .unwrap_or(i64::MAX)
        .clamp(1, i64::from(i32::MAX))
}

/// Work inside a transaction: it may be done more than once, each time from the beginning.
pub(super) trait Work: Sync {
    /// What it comes to.
    type Done: Send;

    /// How many of its statements may each need all the time that a statement has.
    const LONG: u32 = 1;

    /// Does it inside the open transaction.
    fn run(
        &self,
        conn: &mut PgConnection,
    ) -> impl Future<Output = Result<Self::Done, Fault>> + Send;
}

/// How work reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// In a transaction, with its bounds.
    Transaction,
    /// As one statement, which is a transaction of its own: a third of the round trips.
    Statement,
}

impl Form {
    /// The form of work that is one statement. Behind a pooler it needs a transaction all the
    /// same: the statement is prepared and executed in two steps, on what may be two servers
    /// otherwise.
    pub(super) fn of_one_statement(options: &PostgresOptions) -> Self {
        match options.behind_pooler {
            true => Self::Transaction,
            false => Self::Statement,
        }
    }
}

/// How long work may take that nobody is in the way of, with the wait for a connection.
pub(super) fn bound(options: &PostgresOptions) -> Duration {
    let once = options.statement_timeout.saturating_add(BEYOND);
    once.saturating_add(ACQUIRE_MAX)
}

/// Runs work, and begins anew if others were in its way. An error means that the outcome is
/// unknown, as for every verb.
pub(super) async fn run<W: Work>(
    pool: &Pool,
    options: &PostgresOptions,
    (form, begin): (Form, &Begin),
    operation: &'static str,
    work: W,
) -> Result<W::Done, StoreError> {
    let statements = options.statement_timeout.saturating_mul(W::LONG);
    let bound = statements.saturating_add(BEYOND);
    let mut round = 0;
    loop {
        let mut conn = pool
            .acquire()
            .await
            .map_err(|error| explained(options, operation, error))?;
        let once = async {
            match form {
                Form::Statement => work.run(&mut conn).await,
                Form::Transaction => {
                    let mut tx = begin.on(&mut conn).await?;
                    match work.run(&mut tx).await {
                        Ok(done) => {
                            tx.commit().await?;
                            Ok(done)
                        }
                        Err(fault) => {
                            // The server tells of an error before it lets go of the locks, and the
                            // next try must not meet those. If the connection is gone, so are they.
                            let _ = tx.rollback().await;
                            Err(fault)
                        }
                    }
                }
            }
        };
        let done = within(&*options.seam, bound, operation, once).await;
        let is_gone = match &done {
            Ok(Err(Fault::Sql(error))) => ends_connection(error),
            done => done.is_err(),
        };
        if is_gone {
            pool.found_broken(options.seam.elapsed());
        }
        match done {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(fault)) if fault.is_worth_repeating() && round < ROUNDS_MAX => {
                drop(conn);
                round += 1;
                tracing::debug!(
                    operation,
                    round,
                    ?fault,
                    "others were in the way; once more"
                );
                options
                    .seam
                    .sleep(pause(round, options.seam.random()))
                    .await;
            }
            Ok(Err(Fault::Sql(error))) => return Err(explained(options, operation, error)),
            Ok(Err(fault)) => return Err(fault.into_store(operation)),
            Err(error) => {
                // Whatever is still under way on it, nobody shall wait for that again.
                drop(conn.detach());
                return Err(error);
            }
        }
    }
}

/// A short pause that differs from one to the other, so that those who met do not meet again.
pub(super) fn pause(round: u32, random: u64) -> Duration {
    let most = 1_000 << round.min(7);
    Duration::from_micros(random % most)
}

/// Gives up on what takes longer than it may.
pub(super) async fn within<T>(
    seam: &dyn Seam,
    bound: Duration,
    operation: &'static str,
    future: impl Future<Output = T>,
) -> Result<T, StoreError> {
    tokio::select! {
        biased;
        done = future => Ok(done),
        // What was under way is dropped; the outcome is unknown.
        () = seam.sleep(bound) => Err(StoreError::new(
            StoreErrorKind::Unavailable,
            operation,
            format!("the server did not answer within {bound:?}"),
        )),
    }
}

/// Adds which server it was, where that is what a person needs to know.
pub(super) fn explained(
    options: &PostgresOptions,
    operation: &'static str,
    error: SqlxError,
) -> StoreError {
    let about_server = match &error {
        SqlxError::Io(_) | SqlxError::Tls(_) => true,
        SqlxError::Database(said) => said.code().is_some_and(|code| {
            code.starts_with("28") || code.starts_with("08") || code == "3D000"
        }),
        _ => false,
    };
    if !about_server {
        return store_error(operation, error);
    }
    of_server(options, store_error(operation, error))
}

/// Adds which server it was.
fn of_server(options: &PostgresOptions, plain: StoreError) -> StoreError {
    let said = format!("server {}: {}", options.server(), plain.message());
    plain.saying(said)
}
