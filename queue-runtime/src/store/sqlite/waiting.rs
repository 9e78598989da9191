//! What still has to be read by a program: counts by the shape of payloads, and the jobs.

use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::error::Fault;
use super::rows::{self, Columns, json, limit};
use super::statements::SqlQuery;
use crate::error::StoreError;
use crate::job::{JobId, JobRecord, JobType, QueueName};
use crate::store::listing::Listing;
use crate::store::{Unread, Waiting};

impl SqliteStore {
    pub(super) async fn counted_waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        let sql = &self.statements.waiting;
        let read = |row: &SqliteRow| readable(row, "waiting", waiting);
        let counted = self.read("waiting", sql, |query| query, read).await?;
        Ok(counted.into_iter().flatten().collect())
    }

    pub(super) async fn counted_unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        let known: Vec<_> = known
            .iter()
            .map(|(name, highest)| (name.as_str(), highest))
            .collect();
        let queues: Vec<_> = queues.iter().map(QueueName::as_str).collect();
        let (queues, known) = (json(&queues), json(&known));
        let sql = &self.statements.unread;
        let bind = |query: SqlQuery| query.bind(queues).bind(known);
        let read = |row: &SqliteRow| readable(row, "unread", unread);
        let counted = self.read("unread", sql, bind, read).await?;
        Ok(counted.into_iter().flatten().collect())
    }

    pub(super) async fn listed_waiting(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let mut listing = Listing::new(after.map(|id| ((), id.to_string())), count);
        while let Some((after, left)) = listing.wanted() {
            let bind = |query: SqlQuery| {
                let query = query.bind(job_type.as_str().to_owned());
                let query = query.bind(queue.as_str().to_owned()).bind(schema);
                let query = query.bind(after.map(|((), id)| id));
                query.bind(limit(left))
            };
            let sql = &self.statements.waiting_sample;
            listing.add(
                self.read("waiting_sample", sql, bind, rows::sampled)
                    .await?,
            );
        }
        Ok(listing.jobs())
    }
}

fn waiting(columns: &mut Columns<'_>) -> Result<Waiting, Fault> {
    Ok(Waiting {
        job_type: columns.parsed("job_type")?,
        queue: columns.parsed("queue")?,
        payload_schema: columns.number("payload_schema")?,
        queued: columns.number("count")?,
        processing: columns.number("count")?,
        dead_letters: columns.number("count")?,
    })
}

fn unread(columns: &mut Columns<'_>) -> Result<Unread, Fault> {
    Ok(Unread {
        job_type: columns.parsed("job_type")?,
        payload_schema: columns.number("payload_schema")?,
        jobs: columns.number("count")?,
    })
}

/// Reads a count unless its type, queue or schema breaks a rule: then the others are still told.
fn readable<T>(
    row: &SqliteRow,
    operation: &'static str,
    read: impl FnOnce(&mut Columns<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    match read(&mut Columns::of(row)) {
        Ok(count) => Ok(Some(count)),
        Err(Fault::Row(fault)) => {
            tracing::error!(fault, "left out of what `{operation}` counts");
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}
