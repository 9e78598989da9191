//! Enqueuing inside a transaction of the caller's, on the same database.
//!
//! The jobs become visible with the caller's commit and vanish with its rollback. A savepoint
//! keeps a failed batch from leaving half of itself, or a broken transaction, behind.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};

use super::PostgresStore;
use super::connect::Work;
use super::error::{self, Fault, store_error};
use super::insert::{Insert, has_new};
use super::notify::Notification;
use super::wake::FROM_A_TRANSACTION;
use crate::error::EnqueueError;
use crate::job::NewJob;
use crate::store::Inserted;

/// How often a batch is decided anew because others stored what it meets.
const ROUNDS_MAX: usize = 5;

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
        // On a connection without a transaction this begins one, else it sets a savepoint.
        let mut tx = conn
            .begin()
            .await
            .map_err(|error| store_error("insert", error))?;
        self.verify_database(&mut tx).await?;
        let insert = Insert {
            statements: &self.statements,
            now: self.manual_now(),
            jobs,
        };
        let mut round = 0;
        let inserted = loop {
            let refuse = |fault: Fault| EnqueueError::Store(fault.into_store("insert"));
            let mut inner = tx.begin().await.map_err(|e| refuse(Fault::Sql(e)))?;
            match insert.run(&mut inner).await {
                Ok(inserted) => {
                    inner.commit().await.map_err(|e| refuse(Fault::Sql(e)))?;
                    break inserted;
                }
                Err(fault) => {
                    // If the connection is gone already, there is nothing left to undo on it.
                    let undone = inner.rollback().await;
                    round += 1;
                    if !fault.is_lost_race() || round == ROUNDS_MAX || undone.is_err() {
                        return Err(refuse(match fault.is_lost_race() {
                            true => Fault::Lost,
                            false => fault,
                        }));
                    }
                }
            }
        };
        if has_new(&inserted) {
            self.tell_at_commit(&mut tx).await?;
        }
        tx.commit()
            .await
            .map_err(|error| store_error("insert", error))?;
        Ok(inserted)
    }

    /// Lets the caller's commit tell all workers, those of this process too. However often this
    /// is done in one transaction, they are told once.
    async fn tell_at_commit(&self, conn: &mut PgConnection) -> Result<(), EnqueueError> {
        let Some(channel) = self.wakes.channel_of_transactions() else {
            return Ok(());
        };
        let notification = Notification {
            sql: &self.statements.notify,
            channel,
            payload: FROM_A_TRANSACTION,
        };
        let told = notification.run(conn).await;
        told.map_err(|fault| EnqueueError::Store(fault.into_store("insert")))
    }

    /// Checks that the caller's transaction is on our database.
    async fn verify_database(&self, conn: &mut PgConnection) -> Result<(), EnqueueError> {
        let other = |rule: &str| {
            Err(EnqueueError::OtherDatabase {
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
            Err(refused) => Err(EnqueueError::Store(store_error("insert", refused))),
        }
    }
}
