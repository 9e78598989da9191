//! The verbs of a store: those that write go to the writer, those that only read to the readers.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::encode::Prepared;
use super::error::{Fault, closed};
use super::heartbeat::SqliteHeartbeat;
use super::ops::Op;
use super::rows::{self, Columns, limit};
use super::statements::SqlQuery;
use super::{SqliteStore, claim, connect, schema};
use crate::error::{StoreError, StoreErrorKind};
use crate::job::{
    Attempt, Claimed, JobId, JobRecord, JobState, JobType, NewJob, QueueName, Settled, Settlement,
    Verified,
};
use crate::store::listing::Listing;
use crate::store::{
    Admin, Cancelling, ClaimRequest, Counts, Edit, Heartbeat, Inserted, Pruned, Replaying,
    Retention, Store, Unread, Versions, Waiting, WakeListener,
};
use crate::time::Timestamp;

#[async_trait]
impl Store for SqliteStore {
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.wall_clock();
        let jobs = jobs.iter().map(|job| Prepared::new(job, now)).collect();
        self.write("insert", |reply| Op::Insert { jobs, reply })
            .await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        if request.limit == 0 {
            return Ok(Vec::new());
        }
        let op = |reply| Op::Exchange {
            settlements: Vec::new(),
            request: Some(request.clone()),
            operation: "claim",
            reply,
        };
        let (_, claimed) = self.write("claim", op).await?;
        Ok(claimed)
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let op = |reply| Op::Exchange {
            settlements: settlements.to_vec(),
            request: None,
            operation: "settle",
            reply,
        };
        let (settled, _) = self.write("settle", op).await?;
        Ok(settled)
    }

    async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        let op = |reply| Op::Exchange {
            settlements: settlements.to_vec(),
            request: Some(request.clone()),
            operation: "exchange",
            reply,
        };
        self.write("exchange", op).await
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        if self.sender().is_none() {
            return Err(closed("heartbeat"));
        }
        let heartbeat = SqliteHeartbeat::open(
            self.options.clone(),
            Arc::clone(&self.statements),
            Arc::clone(&self.turn),
        )
        .await?;
        Ok(Box::new(heartbeat))
    }

    async fn expired(&self, count: usize) -> Result<Vec<JobRecord>, StoreError> {
        let now = self.manual_now();
        let records = self
            .read(
                "expired",
                &self.statements.expired,
                |query| query.bind(limit(count)).bind(now),
                |row| match rows::record(row) {
                    Ok(record) => Ok(Some(record)),
                    Err(Fault::Row(_)) => Ok(None),
                    Err(fault) => Err(fault),
                },
            )
            .await?;
        // All or nothing: a row that cannot be read is for the writer, which looks again.
        match records.into_iter().collect() {
            Some(expired) => Ok(expired),
            None => {
                let op = |reply| Op::Expired {
                    limit: count,
                    reply,
                };
                self.write("expired", op).await
            }
        }
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        let asked = claim::Asked::new(request);
        let now = self.manual_now();
        let found = self
            .read(
                "next_due",
                &self.statements.next_due,
                |query| {
                    query
                        .bind(asked.queues)
                        .bind(asked.job_types)
                        .bind(request.suspects.crashes)
                        .bind(limit(request.suspects.limit))
                        .bind(now)
                },
                |row| Columns::of(row).take::<Option<i64>>(),
            )
            .await?;
        Ok(found
            .into_iter()
            .flatten()
            .next()
            .map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        if self.sender().is_none() {
            return Err(closed("migrate"));
        }
        let mut conn = connect::connect(&self.options, &self.statements, "migrate").await?;
        schema::migrate(&mut conn, &self.statements).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = self.manual_now();
        let read = self.read(
            "now",
            &self.statements.clock,
            |query| query.bind(now),
            |row| Columns::of(row).instant(),
        );
        read.await?.pop().ok_or_else(|| no_row("now"))
    }

    fn wakes(&self) -> WakeListener {
        let listener = self.wake.listen();
        // A writer with a full queue sees the listener when it comes to its next batch.
        if let Some(writer) = self.sender() {
            let _ = writer.try_send(Op::Listen);
        }
        listener
    }

    async fn close(&self) {
        let ops = self
            .ops
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(ops);
        let mut writer = self.writer.clone();
        // Nothing is ever sent: this ends when the writer has dropped its side.
        while writer.changed().await.is_ok() {}
        self.readers.close().await;
        self.transactions.close().await;
    }
}

#[async_trait]
impl Admin for SqliteStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let sql = &self.statements.job;
        let mut found = self
            .read("job", sql, |query| query.bind(id.to_string()), rows::record)
            .await?;
        Ok(found.pop())
    }

    async fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let before = before.map(|(at, id)| (at.as_millis(), id.to_string()));
        let mut listing = Listing::new(before, count);
        while let Some((before, left)) = listing.wanted() {
            let (at, id) = before.unzip();
            let bind = |query: SqlQuery| {
                let query = query.bind(state.as_str()).bind(at).bind(id);
                query.bind(limit(left))
            };
            let sql = &self.statements.finished;
            listing.add(self.read("finished", sql, bind, rows::finished).await?);
        }
        Ok(listing.jobs())
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        let sql = &self.statements.attempts;
        let bind = |query: SqlQuery| query.bind(id.to_string());
        self.read("attempts", sql, bind, rows::attempt).await
    }

    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError> {
        self.write("cancel", |reply| Op::Cancel { id, reply }).await
    }

    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError> {
        let op = |reply| Op::Replay {
            id,
            as_new,
            edit: None,
            reply,
        };
        self.write("replay", op).await
    }

    async fn replay_with(
        &self,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        let op = |reply| Op::Replay {
            id,
            as_new,
            edit: Some(edit.clone()),
            reply,
        };
        self.write("replay_with", op).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let rows = self
            .read(
                "counts",
                &self.statements.counts,
                |query| query,
                |row| {
                    let mut columns = Columns::of(row);
                    Ok((
                        columns.parsed::<JobState>("status")?,
                        columns.number::<u64>("count")?,
                    ))
                },
            )
            .await?;
        let mut counts = Counts::default();
        for (state, count) in rows {
            *counts.of_mut(state) += count;
        }
        Ok(counts)
    }

    async fn unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        self.counted_unread(queues, known).await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        self.counted_waiting().await
    }

    async fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        self.listed_waiting(job_type, queue, schema, after, count)
            .await
    }

    async fn verify(&self, limit: usize) -> Result<Verified, StoreError> {
        self.verified(limit).await
    }

    async fn prune(&self, retention: &Retention, count: usize) -> Result<Pruned, StoreError> {
        let op = |reply| Op::Prune {
            retention: *retention,
            limit: count,
            reply,
        };
        self.write("prune", op).await
    }
}

#[async_trait]
impl Versions for SqliteStore {
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError> {
        let sql = &self.statements.newest_version;
        let bind = |query: SqlQuery| query.bind(cache_key.to_owned());
        let read = |row: &SqliteRow| Columns::of(row).number("version");
        let mut found = self.read("newest_version", sql, bind, read).await?;
        Ok(found.pop())
    }
}

fn no_row(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        operation,
        "SQLite gave no row where there is always one",
    )
}
