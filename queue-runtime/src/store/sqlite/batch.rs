//! One transaction of the writer's: many operations, few statements.
//!
//! One bad operation does not hurt the others: a batch runs without savepoints first, since two
//! more calls per operation would cost more than the work; if anything fails, all of it is rolled
//! back and runs again with a savepoint around each operation.

use sqlx::Executor;
use sqlx::sqlite::SqliteConnection;

use super::aside::Unreadable;
use super::encode::Prepared;
use super::error::Fault;
use super::ops::{Answer, Op};
use super::rows::Columns;
use super::statements::Statements;
use super::{actions, claim, insert, replay, settle};
use crate::failpoint;
use crate::job::{Claimed, Settlement};
use crate::store::{ClaimRequest, Inserted, Replaying};
use crate::time::Timestamp;

/// One transaction's work.
pub(super) struct Batch<'a> {
    pub(super) conn: &'a mut SqliteConnection,
    pub(super) statements: &'a Statements,
    /// The time on a clock moved by hand, if there is one.
    pub(super) clock: Option<Timestamp>,
    /// Whether a job became claimable.
    pub(super) wake: bool,
    /// Jobs that were set aside because they cannot be read.
    pub(super) set_aside: Vec<Unreadable>,
}

impl Batch<'_> {
    /// Does all operations in one transaction. An error means that none of them happened.
    pub(super) async fn run(&mut self, ops: &[Op]) -> Result<Vec<Result<Answer, Fault>>, Fault> {
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
                self.set_aside.clear();
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
                        Some(request) => self.claim(now, request).await?,
                        None => Vec::new(),
                    };
                    Answer::Exchanged(settled, claimed)
                }
                other => self.single(now, other).await?,
            });
        }
        Ok(answers)
    }

    async fn claim(
        &mut self,
        now: Timestamp,
        request: &ClaimRequest,
    ) -> Result<Vec<Claimed>, Fault> {
        let (claimed, unreadable) = claim::claim(self.conn, self.statements, now, request).await?;
        self.note(unreadable);
        failpoint::point!("claim.uncommitted", if !claimed.is_empty());
        Ok(claimed)
    }

    /// Remembers what was set aside; what waited behind it may have become claimable.
    fn note(&mut self, unreadable: Vec<Unreadable>) {
        self.wake |= !unreadable.is_empty();
        self.set_aside.extend(unreadable);
    }

    /// Does an operation that no other shares a statement with.
    async fn single(&mut self, now: Timestamp, op: &Op) -> Result<Answer, Fault> {
        let (conn, statements) = (&mut *self.conn, self.statements);
        match op {
            Op::Expired { limit, .. } => {
                let (expired, unreadable) = actions::expired(conn, statements, now, *limit).await?;
                self.note(unreadable);
                Ok(Answer::Expired(expired))
            }
            Op::Cancel { id, .. } => {
                let (answer, wake) = actions::cancel(conn, statements, now, *id).await?;
                self.wake |= wake;
                Ok(Answer::Cancelled(answer))
            }
            Op::Replay {
                id, as_new, edit, ..
            } => {
                let edit = edit.as_ref();
                let answer = replay::replay(conn, statements, now, *id, *as_new, edit).await?;
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
            let before = self.set_aside.len();
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
                    self.set_aside.truncate(before);
                    answers.push(Err(fault));
                }
            }
        }
        Ok(answers)
    }
}
