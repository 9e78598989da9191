//! Enqueuing and completing inside a transaction of the caller's, on the same database.
//!
//! The jobs become visible with the caller's commit and vanish with its rollback. A savepoint
//! keeps a failed batch from leaving half of itself, or a broken transaction, behind. The caller's
//! settings stay as they are: one whose search path puts `pg_catalog` behind a schema of strangers
//! gets theirs in our statements too.

use std::ops::{Deref, DerefMut};

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor, Postgres, Transaction};

use super::PostgresStore;
use super::connect::{Work, pause};
use super::error::{self, Fault, store_error};
use super::insert::{Insert, has_due};
use super::notify::Notification;
use super::settle;
use super::wake::FROM_A_TRANSACTION;
use crate::error::{EnqueueError, FenceError};
use crate::job::{Lease, NewJob, Settled, Settlement};
use crate::store::Inserted;

/// How often a batch is decided anew because others stored what it meets.
const ROUNDS_MAX: u32 = 5;

impl PostgresStore {
    /// Inserts jobs inside the caller's transaction, and answers each in order, as
    /// [`insert`](crate::store::Store::insert) does. Nothing of the batch is stored unless all
    /// of it is, and nothing is visible to others before the caller commits.
    ///
    /// Workers are told of the jobs by the caller's commit, unless the options say
    /// [`notify(false)`](super::PostgresOptions::notify), which also says what that costs.
    ///
    /// A dedupe or idempotency key that another open transaction has just stored makes this wait
    /// for that one's end, at most as long as the caller's `lock_timeout` allows.
    ///
    /// # Errors
    /// [`EnqueueError::OtherDatabase`] if the connection is not to this store's database; nothing
    /// was written. [`EnqueueError::Store`] if Postgres refused; the caller's transaction can go
    /// on, unless the connection was lost.
    pub async fn insert_in(
        &self,
        conn: &mut PgConnection,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, EnqueueError> {
        let refuse = |fault: Fault| EnqueueError::Store(fault.into_store("insert"));
        let insert = Insert {
            statements: &self.statements,
            now: self.manual_now(),
            jobs,
        };
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                // The part is undone, so it holds nothing that those who met here could wait for.
                let seam = &self.options.seam;
                seam.sleep(pause(round, seam.random())).await;
            }
            let begun = self.part("insert", conn).await;
            let mut part = begun.map_err(EnqueueError::of_fence)?;
            let inserted = async {
                let inserted = insert.run(&mut part).await?;
                if has_due(jobs, &inserted, self.options.wall_clock()) {
                    self.tell_at_commit(&mut part).await?;
                }
                Ok::<_, Fault>(inserted)
            };
            match inserted.await {
                Ok(inserted) => {
                    part.keep().await.map_err(refuse)?;
                    return Ok(inserted);
                }
                Err(fault) => {
                    // If the connection is gone already, there is nothing left to undo on it.
                    let undone = part.undo().await;
                    if !fault.is_undone_with_its_part() || undone.is_err() {
                        return Err(refuse(fault));
                    }
                }
            }
        }
        Err(refuse(Fault::Lost))
    }

    /// Completes a job inside the caller's transaction, under its lease token. The job's row is
    /// locked until that ends; heartbeats and rescues leave it alone meanwhile.
    ///
    /// # Errors
    /// [`FenceError`]; nothing was changed, and the caller's transaction can go on. Without an open
    /// transaction the job would end before the writes that go with it, so that is an error of
    /// kind `InvalidInput`.
    pub async fn complete_in(
        &self,
        conn: &mut PgConnection,
        settlement: &Settlement,
    ) -> Result<(), FenceError> {
        let refuse = |fault: Fault| FenceError::Store(fault.into_store("complete_in"));
        let now = self.manual_now();
        let mut part = self.part_of_open("complete_in", conn).await?;
        let settlements = std::slice::from_ref(settlement);
        let settled = async {
            let settle = settle::settle(&mut part, &self.statements, now, settlements);
            let (answers, wake) = settle.await?;
            if wake {
                self.tell_at_commit(&mut part).await?;
            }
            Ok::<_, Fault>(answers)
        };
        match settled.await {
            Ok(answers) => {
                part.keep().await.map_err(refuse)?;
                match answers.first() {
                    Some(Settled::Applied(_)) => Ok(()),
                    _ => Err(FenceError::LeaseLost { id: settlement.id }),
                }
            }
            Err(fault) => {
                // If the connection is gone already, there is nothing left to undo on it.
                let _ = part.undo().await;
                Err(refuse(fault))
            }
        }
    }

    /// Checks inside the caller's transaction that a lease is held, and locks the job's row until
    /// that ends.
    ///
    /// # Errors
    /// [`FenceError`]; nothing was changed. Without an open transaction nothing would be locked, so
    /// that is an error of kind `InvalidInput`.
    pub async fn fence_in(&self, conn: &mut PgConnection, lease: Lease) -> Result<(), FenceError> {
        let refuse = |fault: Fault| FenceError::Store(fault.into_store("fence_in"));
        let mut part = self.part_of_open("fence_in", conn).await?;
        let fence = self.statements.fence.query();
        let fence = fence.bind(*lease.id.as_uuid()).bind(lease.token.get());
        match part.fetch_optional(fence).await {
            Ok(held) => {
                // The lock outlives our part.
                part.keep().await.map_err(refuse)?;
                let lost = FenceError::LeaseLost { id: lease.id };
                held.map(drop).ok_or(lost)
            }
            Err(error) => {
                // If the connection is gone already, there is nothing left to undo on it.
                let _ = part.undo().await;
                Err(refuse(Fault::Sql(error)))
            }
        }
    }

    /// The same, if a transaction is open.
    async fn part_of_open<'c>(
        &self,
        operation: &'static str,
        conn: &'c mut PgConnection,
    ) -> Result<Part<'c>, FenceError> {
        let part = self.part(operation, conn).await?;
        if let Part::Whole(_) = part {
            let undone = part.undo().await;
            undone.map_err(|fault| FenceError::Store(fault.into_store(operation)))?;
            return Err(FenceError::without_transaction(operation));
        }
        Ok(part)
    }

    /// Begins our part of the caller's transaction, if that is on our database. If it is not, the
    /// transaction is as it was: the look-up itself has failed, but in our part of it.
    async fn part<'c>(
        &self,
        operation: &'static str,
        conn: &'c mut PgConnection,
    ) -> Result<Part<'c>, FenceError> {
        let refuse = |fault: Fault| FenceError::Store(fault.into_store(operation));
        let mut part = Part::begin(conn).await.map_err(refuse)?;
        match self.verify_database(operation, &mut part).await {
            Ok(()) => Ok(part),
            Err(refused) => {
                part.undo().await.map_err(refuse)?;
                Err(refused)
            }
        }
    }

    /// Lets the caller's commit tell all workers, those of this process too. However often this
    /// is done in one transaction, they are told once.
    async fn tell_at_commit(&self, conn: &mut PgConnection) -> Result<(), Fault> {
        let Some(channel) = self.wakes.channel_of_transactions() else {
            return Ok(());
        };
        let notification = Notification {
            sql: &self.statements.notify,
            channel,
            payload: FROM_A_TRANSACTION,
        };
        notification.run(conn).await
    }

    /// Checks that the caller's transaction is on our database.
    async fn verify_database(
        &self,
        operation: &'static str,
        conn: &mut PgConnection,
    ) -> Result<(), FenceError> {
        let other = |rule: &str| {
            Err(FenceError::OtherDatabase {
                rule: rule.to_owned(),
            })
        };
        let ours = conn
            .fetch_optional(self.statements.lock.query().bind(self.store_id.clone()))
            .await;
        match ours {
            Ok(Some(_)) => Ok(()),
            Ok(None) => other("its queue has another store id"),
            Err(refused) if error::lacks_our_tables(&refused) => {
                other("it has no queue in the schema of ours")
            }
            Err(refused) => Err(FenceError::Store(store_error(operation, refused))),
        }
    }
}

/// Our part of a caller's transaction, which can be undone without the rest.
enum Part<'c> {
    /// Inside the caller's transaction.
    Savepoint(&'c mut PgConnection),
    /// The caller has no open transaction: ours is all there is. It is undone when it is dropped,
    /// so that one that is given up half-way does not stay open on the caller's connection.
    Whole(Transaction<'c, Postgres>),
}

impl<'c> Part<'c> {
    /// Begins it. A savepoint by hand and not sqlx's, which counts only the transactions that it
    /// has begun itself: a caller may have written `begin` by hand.
    async fn begin(conn: &'c mut PgConnection) -> Result<Self, Fault> {
        match conn.execute("savepoint queue_part").await {
            Ok(_) => Ok(Self::Savepoint(conn)),
            Err(refused) if error::lacks_transaction(&refused) => {
                Ok(Self::Whole(conn.begin().await?))
            }
            Err(refused) => Err(Fault::Sql(refused)),
        }
    }

    async fn keep(self) -> Result<(), Fault> {
        match self {
            Self::Savepoint(conn) => {
                conn.execute("release savepoint queue_part").await?;
            }
            Self::Whole(tx) => tx.commit().await?,
        }
        Ok(())
    }

    async fn undo(self) -> Result<(), Fault> {
        match self {
            Self::Savepoint(conn) => {
                conn.execute("rollback to savepoint queue_part").await?;
                conn.execute("release savepoint queue_part").await?;
            }
            Self::Whole(tx) => tx.rollback().await?,
        }
        Ok(())
    }
}

impl Deref for Part<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Savepoint(conn) => conn,
            Self::Whole(tx) => tx,
        }
    }
}

impl DerefMut for Part<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Savepoint(conn) => conn,
            Self::Whole(tx) => tx,
        }
    }
}
