//! What still has to be read by a program: counts by the shape of payloads, and the jobs.

use sqlx::postgres::PgRow;

use super::error::Fault;
use super::rows::{self, Columns, limit};
use super::statements::Parameters;
use super::{PostgresStore, all};
use crate::error::StoreError;
use crate::job::{JobId, JobRecord, JobType, QueueName};
use crate::store::listing::Listing;
use crate::store::{Unread, Waiting};

impl PostgresStore {
    pub(super) async fn counted_waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        let sql = &self.statements.waiting;
        let rows = self.read("waiting", sql, Parameters::none()).await?;
        let read = |row: &PgRow| readable(row, "waiting", waiting);
        let counted = all("waiting", &rows, read)?;
        Ok(counted.into_iter().flatten().collect())
    }

    pub(super) async fn counted_unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        let queue = |queue: &QueueName| queue.as_str().to_owned();
        let name = |(name, _): &(JobType, u32)| name.as_str().to_owned();
        let highest = |(_, highest): &(JobType, u32)| i64::from(*highest);
        let parameters = Parameters::none()
            .and(rows::column(queues, queue))
            .and(rows::column(known, name))
            .and(rows::column(known, highest));
        let sql = &self.statements.unread;
        let rows = self.read("unread", sql, parameters).await?;
        let read = |row: &PgRow| readable(row, "unread", unread);
        let counted = all("unread", &rows, read)?;
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
        let mut listing = Listing::new(after.map(|id| ((), id)), count);
        while let Some((after, left)) = listing.wanted() {
            let parameters = Parameters::none()
                .and(job_type.as_str())
                .and(queue.as_str())
                .and(i64::from(schema))
                .and(after.map(|((), id)| *id.as_uuid()))
                .and(limit(left));
            let sql = &self.statements.waiting_sample;
            let rows = self.read("waiting_sample", sql, parameters).await?;
            listing.add(all("waiting_sample", &rows, rows::sampled)?);
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
    row: &PgRow,
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
