//! Enqueuing and completing inside a transaction of the caller's, on the same database.
//!
//! The jobs become visible with the caller's commit and vanish with its rollback. A savepoint
//! keeps a failed batch from leaving half of itself in the transaction. What is committed this
//! way is seen by workers through the look at `data_version` and their own polling.

use sqlx::sqlite::SqliteConnection;
use sqlx::{Executor, Sqlite, Transaction};

use super::SqliteStore;
use super::encode::Prepared;
use super::error::{self, Fault, store_error};
use super::rows::Columns;
use super::{insert, settle};
use crate::error::{EnqueueError, FenceError, StoreError, StoreErrorKind};
use crate::job::{Lease, NewJob, Settled, Settlement};
use crate::store::Inserted;
use crate::time::Timestamp;

impl SqliteStore {
    /// Begins a transaction that may write from the start, on a connection of the store's own
    /// for such transactions.
    ///
    /// A plain `BEGIN` only becomes a writing transaction at its first write, and SQLite refuses
    /// that if anybody has written since its first read.
    ///
    /// # Errors
    /// Unavailable, if another writer holds the database for longer than the busy timeout, or
    /// the store is closed. Corrupt, if the database file is not at its path any more.
    pub async fn begin(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.options.verify_file("begin")?;
        let _asking = self.turn.ask();
        self.transactions
            .begin_with("begin immediate")
            .await
            .map_err(|error| store_error("begin", error))
    }

    /// Inserts jobs inside the caller's transaction, and answers each in order, as
    /// [`insert`](crate::store::Store::insert) does. Nothing of the batch is stored unless all
    /// of it is, and nothing is visible to others before the caller commits.
    ///
    /// # Errors
    /// [`EnqueueError::OtherDatabase`] if the connection is not to this store's database; nothing
    /// was written. [`EnqueueError::Store`] if SQLite refused, among others because a transaction
    /// that has read before cannot write any more: begin it with [`begin`](Self::begin).
    pub async fn insert_in(
        &self,
        conn: &mut SqliteConnection,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, EnqueueError> {
        let now = self.wall_clock();
        let jobs: Vec<_> = jobs.iter().map(|job| Prepared::new(job, now)).collect();
        let jobs: Vec<_> = jobs.iter().collect();
        self.lock("insert", conn)
            .await
            .map_err(EnqueueError::of_fence)?;
        let clock = self.options.clock.as_ref().map(|clock| clock.now());
        let refuse = |fault: Fault| EnqueueError::Store(fault.into_store("insert"));
        run(conn, "savepoint queue_insert").await.map_err(refuse)?;
        match insert::insert(conn, &self.statements, clock, &jobs).await {
            Ok(inserted) => {
                run(conn, "release queue_insert").await.map_err(refuse)?;
                Ok(inserted)
            }
            Err(fault) => {
                // If the transaction is gone already, there is nothing left to undo in it.
                let _ = run(conn, "rollback to queue_insert").await;
                let _ = run(conn, "release queue_insert").await;
                Err(refuse(fault))
            }
        }
    }

    /// Completes a job inside the caller's transaction, under its lease token.
    ///
    /// # Errors
    /// [`FenceError`]; nothing was changed. Without an open transaction the job would end before the
    /// writes that go with it, so that is an error of kind `InvalidInput`.
    pub async fn complete_in(
        &self,
        conn: &mut SqliteConnection,
        settlement: &Settlement,
    ) -> Result<(), FenceError> {
        require_open("complete_in", conn).await?;
        self.lock("complete_in", conn).await?;
        let now = match &self.options.clock {
            Some(clock) => clock.now(),
            None => self.clock_of(conn).await?,
        };
        let refuse = |fault: Fault| FenceError::Store(fault.into_store("complete_in"));
        run(conn, "savepoint queue_complete")
            .await
            .map_err(refuse)?;
        let settled = settle::settle(conn, &self.statements, now, &[settlement]).await;
        match settled {
            Ok((answers, _)) => {
                run(conn, "release queue_complete").await.map_err(refuse)?;
                match answers.first() {
                    Some(Settled::Applied(_)) => Ok(()),
                    _ => Err(FenceError::LeaseLost { id: settlement.id }),
                }
            }
            Err(fault) => {
                // If the transaction is gone already, there is nothing left to undo in it.
                let _ = run(conn, "rollback to queue_complete").await;
                let _ = run(conn, "release queue_complete").await;
                Err(refuse(fault))
            }
        }
    }

    /// Checks inside the caller's transaction that a lease is held. The transaction holds the
    /// write lock from here on, so nobody can take the job before it ends.
    ///
    /// # Errors
    /// [`FenceError`]; nothing was changed. Without an open transaction nothing would be held, so that is
    /// an error of kind `InvalidInput`.
    pub async fn fence_in(
        &self,
        conn: &mut SqliteConnection,
        lease: Lease,
    ) -> Result<(), FenceError> {
        require_open("fence_in", conn).await?;
        self.lock("fence_in", conn).await?;
        let held = self
            .statements
            .fence
            .query()
            .bind(lease.id.to_string())
            .bind(lease.token.get())
            .fetch_optional(&mut *conn)
            .await
            .map_err(|error| store_error("fence_in", error))?;
        match held {
            Some(_) => Ok(()),
            None => Err(FenceError::LeaseLost { id: lease.id }),
        }
    }

    /// Reads the store's time over the caller's connection.
    async fn clock_of(&self, conn: &mut SqliteConnection) -> Result<Timestamp, StoreError> {
        let read = async {
            let row = self
                .statements
                .clock
                .query()
                .bind(None::<i64>)
                .fetch_one(&mut *conn)
                .await?;
            Columns::of(&row).instant()
        };
        read.await
            .map_err(|fault: Fault| fault.into_store("complete_in"))
    }

    /// Takes the write lock of the caller's transaction and checks that it is on our database.
    async fn lock(
        &self,
        operation: &'static str,
        conn: &mut SqliteConnection,
    ) -> Result<(), FenceError> {
        let other = |rule: &str| {
            Err(FenceError::OtherDatabase {
                rule: rule.to_owned(),
            })
        };
        let _asking = self.turn.ask();
        let ours = self
            .statements
            .lock
            .query()
            .bind(self.store_id.clone())
            .fetch_optional(&mut *conn)
            .await;
        match ours {
            Ok(Some(_)) => Ok(self.options.verify_file(operation)?),
            Ok(None) => other("its queue has another store id"),
            Err(refused) if error::lacks_our_tables(&refused) => {
                other("it has no table queue_meta")
            }
            Err(refused) if error::is_busy(&refused) => Err(FenceError::Store(
                StoreError::new(
                    StoreErrorKind::Unavailable,
                    operation,
                    "the transaction cannot write: it began with a plain BEGIN and has read before \
                     another connection wrote, or another writer holds the database. Begin it \
                     with `queue.begin()`",
                )
                .caused_by(refused),
            )),
            Err(refused) => Err(FenceError::Store(store_error(operation, refused))),
        }
    }
}

/// Refuses a connection without an open transaction. SQLite begins one only where there is none.
async fn require_open(
    operation: &'static str,
    conn: &mut SqliteConnection,
) -> Result<(), FenceError> {
    if run(conn, "begin").await.is_err() {
        return Ok(());
    }
    let undone = run(conn, "rollback").await;
    undone.map_err(|fault| FenceError::Store(fault.into_store(operation)))?;
    Err(FenceError::without_transaction(operation))
}

async fn run(conn: &mut SqliteConnection, sql: &'static str) -> Result<(), Fault> {
    conn.execute(sql).await?;
    Ok(())
}
