//! The store on a Postgres server, for many processes on many machines.
//!
//! A verb is one transaction, or one statement where that is enough: enqueues at the same time share
//! theirs (`inserter`), and settlements that meet a row which somebody holds begin a second one
//! (`free`). Each statement that changes a running job is guarded by its lease token, and jobs are
//! claimed by row locks that skip each other. Told that it is behind a pooler, the store keeps
//! nothing on a connection between two transactions. Leases are renewed over a connection of their own. The store's
//! clock is the server's; a test may give one that it moves by hand.

mod actions;
mod replay;
mod address;
mod aside;
mod capacity;
mod claim;
mod connect;
mod ear;
mod error;
mod finish;
mod free;
mod heartbeat;
mod in_tx;
mod insert;
mod inserter;
mod instant;
mod lanes;
mod listen;
mod notify;
mod options;
mod pools;
mod probe;
mod rows;
pub mod schema;
mod settle;
mod skew;
mod statements;
#[cfg(test)]
mod tests;
mod verbs;
mod verify;
mod waiting;
mod wake;

use std::fmt;
use std::sync::{Arc, Mutex};

use sqlx::postgres::{PgPool, PgRow};
use tokio::sync::watch;

use self::actions::Inside;
use self::connect::{Begin, Form, Work};
use self::error::Fault;
use self::inserter::Inserter;
use self::instant::At;
use self::lanes::Lanes;
pub use self::listen::Listening;
pub use self::options::PostgresOptions;
use self::pools::{Pool, Pools};
use self::rows::Columns;
use self::statements::{Parameters, Sql, Statements};
use self::wake::Wakes;
use crate::error::{OpenError, StoreError, StoreErrorKind};

/// A store in one schema of a Postgres database.
pub struct PostgresStore {
    options: PostgresOptions,
    statements: Arc<Statements>,
    begin: Begin,
    /// The same for settlements, which wait for a row no longer than a moment.
    begin_brief: Begin,
    store_id: String,
    pools: Pools,
    lanes: Arc<Lanes>,
    wakes: Arc<Wakes>,
    inserter: Arc<Inserter>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("options", &self.options)
            .field("store_id", &self.store_id)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to the server and checks the tables, or creates and upgrades them where the
    /// options say so.
    ///
    /// # Errors
    /// If the server cannot be reached or does not let us in, the tables are missing, incomplete
    /// or too new for this library; each says which.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let statements = Arc::new(Statements::new(&options.schema, !options.behind_pooler));
        let begin = Begin::new(&options);
        let mut conn = connect::connect(&options, "open").await?;
        let checked = async {
            connect::verify_settings(&mut conn, &options).await?;
            connect::verify_encoding(&mut conn).await?;
            if options.migrate {
                schema::migrate(&mut conn, &begin, &statements, &options.schema).await?;
            } else {
                let mut tx = begin
                    .on(&mut conn)
                    .await
                    .map_err(|error| error::store_error("open", error))?;
                schema::verify(&mut tx, &statements, &options.schema).await?;
            }
            let read = async {
                let mut tx = begin.on(&mut conn).await?;
                skew::compare(&mut tx, &statements, &options).await?;
                let too_many = capacity::fault(&mut tx, &statements, &options).await?;
                let row = statements.store_id.query().fetch_one(&mut *tx).await?;
                Ok((too_many, Columns::of(&row).take::<String>()?))
            };
            let (too_many, store_id) = read
                .await
                .map_err(|fault: Fault| fault.into_store("open"))?;
            match too_many {
                None => Ok(store_id),
                Some(rule) => Err(StoreError::new(StoreErrorKind::InvalidInput, "open", rule)),
            }
        };
        let bound = options.statement_timeout;
        let store_id = connect::within(&*options.seam, bound, "open", checked).await??;
        tracing::info!(
            server = options.server(),
            schema = options.schema,
            statements = if options.behind_pooler {
                "unprepared, for a pooler"
            } else {
                "prepared"
            },
            "opened the queue"
        );
        if options.behind_pooler {
            tracing::info!(
                "new jobs of other processes are found by polling: behind a pooler nobody can \
                 listen for them"
            );
        }
        let pools = Pools::new(&options);
        let lanes = Arc::new(Lanes::default());
        let wakes = Wakes::new(&options, &statements, &begin, &pools.common, &store_id);
        let wakes = Arc::new(wakes);
        let inserter = Inserter {
            options: options.clone(),
            statements: Arc::clone(&statements),
            begin: begin.clone(),
            pool: pools.common.clone(),
            lanes: Arc::clone(&lanes),
            wakes: Arc::clone(&wakes),
            line: Mutex::default(),
        };
        Ok(Self {
            inserter: Arc::new(inserter),
            wakes,
            pools,
            lanes,
            begin,
            begin_brief: Begin::brief(&options),
            options,
            statements,
            store_id,
        })
    }

    /// Opens the database of a pool that the application has; see [`PostgresOptions::from_pool`].
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn from_pool(pool: &PgPool) -> Result<Self, OpenError> {
        Self::open(PostgresOptions::from_pool(pool)).await
    }

    /// Tells how well this store hears of the jobs of other processes, now and from now on.
    ///
    /// It listens from the first time that a worker is run on it, or that somebody calls
    /// [`wakes`](crate::store::Store::wakes), and tries every 15 s whether it still hears. Behind
    /// a pooler it never listens. When it does not hear, jobs are found by polling.
    pub fn listening(&self) -> watch::Receiver<Listening> {
        self.wakes.listening()
    }

    fn manual_now(&self) -> Option<At> {
        self.options.manual_now()
    }

    /// A job became claimable by what this process has done.
    fn woke(&self) {
        self.lanes.forget();
        self.wakes.give();
    }

    fn inside(&self) -> Inside<'_> {
        Inside {
            statements: &self.statements,
            now: self.manual_now(),
        }
    }

    /// Runs work in a transaction of its own.
    async fn transact<W: Work>(
        &self,
        pool: &Pool,
        operation: &'static str,
        work: W,
    ) -> Result<W::Done, StoreError> {
        let how = (Form::Transaction, &self.begin);
        connect::run(pool, &self.options, how, operation, work).await
    }

    /// Runs work that is one statement.
    async fn execute<W: Work>(
        &self,
        pool: &Pool,
        operation: &'static str,
        work: W,
    ) -> Result<W::Done, StoreError> {
        let how = (Form::of_one_statement(&self.options), &self.begin);
        connect::run(pool, &self.options, how, operation, work).await
    }

    /// Reads the rows of one statement that is not a worker's own.
    async fn read(
        &self,
        operation: &'static str,
        sql: &Sql,
        parameters: Parameters,
    ) -> Result<Vec<PgRow>, StoreError> {
        let read = Read { sql, parameters };
        self.execute(&self.pools.common, operation, read).await
    }
}

/// One statement whose rows are read.
struct Read<'a> {
    sql: &'a Sql,
    parameters: Parameters,
}

impl Work for Read<'_> {
    type Done = Vec<PgRow>;

    async fn run(&self, conn: &mut sqlx::PgConnection) -> Result<Vec<PgRow>, Fault> {
        let query = self.sql.with(self.parameters.clone());
        Ok(query.fetch_all(&mut *conn).await?)
    }
}

/// Turns rows into values.
fn all<T>(
    operation: &'static str,
    rows: &[PgRow],
    read: impl Fn(&PgRow) -> Result<T, Fault>,
) -> Result<Vec<T>, StoreError> {
    let read: Result<_, Fault> = rows.iter().map(read).collect();
    read.map_err(|fault| fault.into_store(operation))
}
