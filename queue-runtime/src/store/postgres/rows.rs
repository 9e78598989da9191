//! Rows to values and values to rows: the only place that knows the order of columns.
//!
//! Whole batches travel as one array per column, so that a batch costs one statement. What is
//! stored is checked as it is read: a value that breaks its rule is a [`Fault::Row`] that names
//! the column and the rule, never the value of a payload.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{Column, Decode, Error as SqlxError, Postgres, Row, Type};
use uuid::Uuid;

use super::error::Fault;
use super::instant::At;
use crate::job::{
    Attempt, CacheKey, Claimed, DeadReason, JobId, JobRecord, JobState, LeaseToken, OutcomeKind,
    WorkerId,
};
use crate::store::listing::Listed;
use crate::time::Timestamp;

/// A span as statements take it.
pub(super) fn span_ms(span: Duration) -> i64 {
    crate::time::millis(span)
}

/// A count as statements take it; more than Postgres can count means no bound. Half of what it
/// can count, since statements add two of them.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

/// One column of a batch.
pub(super) fn column<T, C>(batch: &[T], of: impl Fn(&T) -> C) -> Vec<C> {
    batch.iter().map(of).collect()
}

/// The ids of a batch.
pub(super) fn ids(jobs: impl IntoIterator<Item = JobId>) -> Vec<Uuid> {
    jobs.into_iter().map(|id| *id.as_uuid()).collect()
}

/// Reads the columns of one row from left to right.
pub(super) struct Columns<'r> {
    row: &'r PgRow,
    next: usize,
}

impl<'r> Columns<'r> {
    /// Starts at the leftmost column.
    pub(super) fn of(row: &'r PgRow) -> Self {
        Self { row, next: 0 }
    }

    /// Starts at a column further on.
    pub(super) fn at(row: &'r PgRow, next: usize) -> Self {
        Self { row, next }
    }

    /// Takes the next column.
    pub(super) fn take<T: Decode<'r, Postgres> + Type<Postgres>>(&mut self) -> Result<T, Fault> {
        let index = self.next;
        self.next += 1;
        self.row
            .try_get::<T, _>(index)
            .map_err(|error| match error {
                // What Postgres calls the column is shorter and says more than its place.
                SqlxError::ColumnDecode { source, .. } => {
                    let name = self.row.column(index).name();
                    Fault::Row(format!("stored {name}: {source}"))
                }
                error => Fault::Sql(error),
            })
    }

    /// Takes a word, if there is one that this library knows: a newer one may have written
    /// others.
    pub(super) fn known<T: FromStr>(&mut self) -> Result<Option<T>, Fault> {
        let stored: Option<&str> = self.take()?;
        Ok(stored.and_then(|stored| stored.parse().ok()))
    }

    /// Takes a number of a smaller type.
    pub(super) fn number<T: TryFrom<i64>>(&mut self, column: &str) -> Result<T, Fault> {
        let stored: i64 = self.take()?;
        T::try_from(stored).map_err(|_| broken(column, &stored, "it is out of range"))
    }

    /// Takes a number of a smaller type, if there is one.
    fn number_opt<T: TryFrom<i64>>(&mut self, column: &str) -> Result<Option<T>, Fault> {
        let stored: Option<i64> = self.take()?;
        stored
            .map(|stored| {
                T::try_from(stored).map_err(|_| broken(column, &stored, "it is out of range"))
            })
            .transpose()
    }

    /// Takes a text that stands for a value with rules of its own.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, column: &str) -> Result<T, Fault> {
        let stored: &str = self.take()?;
        stored.parse().map_err(|e| broken(column, &stored, e))
    }

    /// Takes such a text, if there is one.
    pub(super) fn parsed_opt<T: FromStr<Err: Display>>(
        &mut self,
        column: &str,
    ) -> Result<Option<T>, Fault> {
        let stored: Option<&str> = self.take()?;
        stored
            .map(|stored| stored.parse().map_err(|e| broken(column, &stored, e)))
            .transpose()
    }

    /// Takes the id of a job.
    pub(super) fn id(&mut self) -> Result<JobId, Fault> {
        Ok(JobId::from_uuid(self.take::<Uuid>()?))
    }

    /// Takes the id of a job, if there is one.
    pub(super) fn id_opt(&mut self) -> Result<Option<JobId>, Fault> {
        Ok(self.take::<Option<Uuid>>()?.map(JobId::from_uuid))
    }

    /// Takes an instant.
    pub(super) fn instant(&mut self) -> Result<Timestamp, Fault> {
        Ok(self.take::<At>()?.0)
    }

    /// Takes an instant, if there is one.
    pub(super) fn instant_opt(&mut self) -> Result<Option<Timestamp>, Fault> {
        Ok(self.take::<Option<At>>()?.map(|at| at.0))
    }

    /// Takes a slot of a dedupe key.
    pub(super) fn slot(&mut self) -> Result<u8, Fault> {
        let stored: i16 = self.take()?;
        u8::try_from(stored).map_err(|_| broken("dedupe_slot", &stored, "it is out of range"))
    }

    /// Takes a cache key and its version.
    fn cache(&mut self) -> Result<Option<CacheKey>, Fault> {
        let key: Option<String> = self.take()?;
        let version: Option<u64> = self.number_opt("cache_version")?;
        Ok(key
            .zip(version)
            .map(|(key, version)| CacheKey { key, version }))
    }
}

fn broken(column: &str, stored: &dyn Display, rule: impl Display) -> Fault {
    const SHOWN_CHARS_MAX: usize = 80;
    let shown: String = stored.to_string().chars().take(SHOWN_CHARS_MAX).collect();
    Fault::Row(format!("stored {column} {shown:?}: {rule}"))
}

/// The place of whether the job is live among the columns of `verify_records.sql`, after those of a
/// record.
pub(super) const IS_LIVE: usize = 31;

/// Reads a job of any state; the columns of `job.sql`, `finished.sql` and `expired.sql`, and those of
/// `verify_records.sql` but for its last.
pub(super) fn record(row: &PgRow) -> Result<JobRecord, Fault> {
    let mut columns = Columns::of(row);
    Ok(JobRecord {
        id: columns.id()?,
        job_type: columns.parsed("job_type")?,
        queue: columns.parsed("queue")?,
        payload: columns.take()?,
        payload_schema: columns.number("payload_schema")?,
        state: columns.parsed::<JobState>("status")?,
        priority: columns.take()?,
        attempts: columns.number("attempts")?,
        max_attempts: columns.number("max_attempts")?,
        crashes: columns.number("crashes")?,
        snoozes: columns.number("snoozes")?,
        generation: columns.number("generation")?,
        run_at: columns.instant()?,
        cancel_requested_at: columns.instant_opt()?,
        locked_until: columns.instant_opt()?,
        locked_by: columns.parsed_opt("locked_by")?,
        lock_token: columns.take::<Option<i64>>()?.map(LeaseToken::new),
        dedupe_key: columns.take()?,
        dedupe_slot: columns.slot()?,
        idempotency_key: columns.take()?,
        cache: columns.cache()?,
        deadline: columns.instant_opt()?,
        last_outcome: columns.known::<OutcomeKind>()?,
        dead_reason: columns.known::<DeadReason>()?,
        last_error: columns.take()?,
        trace_context: columns.take()?,
        created_at: columns.instant()?,
        updated_at: columns.instant()?,
        started_at: columns.instant_opt()?,
        finished_at: columns.instant_opt()?,
    })
}

/// Reads the id of a row that begins with one, whatever else is in the row.
pub(super) fn id(row: &PgRow) -> Result<JobId, Fault> {
    Columns::of(row).id()
}

/// Reads a row of `finished.sql`: its place in the list, and the job.
pub(super) fn finished(row: &PgRow) -> Result<Listed<Timestamp, JobId>, Fault> {
    const FINISHED_AT: usize = 30;
    let place = (row.try_get::<At, _>(FINISHED_AT)?.0, id(row)?);
    Ok((
        place,
        record(row).map_err(|fault| fault.into_store("finished")),
    ))
}

/// Reads a row of `waiting_sample.sql`: its place in the list, and the job.
pub(super) fn sampled(row: &PgRow) -> Result<Listed<(), JobId>, Fault> {
    let record = record(row).map_err(|fault| fault.into_store("waiting_sample"));
    Ok((((), id(row)?), record))
}

/// Reads an attempt; the columns of `attempts.sql`.
pub(super) fn attempt(row: &PgRow) -> Result<Attempt, Fault> {
    let mut columns = Columns::of(row);
    Ok(Attempt {
        token: LeaseToken::new(columns.take()?),
        number: columns.number("number")?,
        worker: columns.parsed::<WorkerId>("worker")?,
        started_at: columns.instant()?,
        finished_at: columns.instant_opt()?,
        outcome: columns.known::<OutcomeKind>()?,
        error: columns.take()?,
    })
}

/// Jobs that a claim takes in one order: of one queue, type, payload schema, row of crashes and
/// priority, from a key on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) queue: String,
    pub(super) job_type: String,
    pub(super) payload_schema: i64,
    pub(super) crashes: i64,
    pub(super) priority: i16,
    /// The key of the first job that may wait there.
    pub(super) run_at: Timestamp,
    pub(super) id: JobId,
}

/// Reads a lane; the columns of `lanes.sql`.
pub(super) fn lane(row: &PgRow) -> Result<Lane, Fault> {
    let mut columns = Columns::of(row);
    Ok(Lane {
        queue: columns.take()?,
        job_type: columns.take()?,
        payload_schema: columns.take()?,
        crashes: columns.take()?,
        priority: columns.take()?,
        run_at: columns.instant()?,
        id: columns.id()?,
    })
}

/// A job that a claim has taken.
pub(super) struct Taken {
    pub(super) claimed: Claimed,
    pub(super) priority: i16,
}

/// Reads a taken job; the columns of `claim.sql`.
pub(super) fn taken(row: &PgRow) -> Result<Taken, Fault> {
    let mut columns = Columns::of(row);
    let id = columns.id()?;
    let claimed_at = columns.instant()?;
    let claimed = Claimed {
        id,
        claimed_at,
        job_type: columns.parsed("job_type")?,
        queue: columns.parsed("queue")?,
        payload: columns.take()?,
        payload_schema: columns.number("payload_schema")?,
        attempt: columns.number("attempts")?,
        max_attempts: columns.number("max_attempts")?,
        crashes: columns.number("crashes")?,
        snoozes: columns.number("snoozes")?,
        generation: columns.number("generation")?,
        token: LeaseToken::new(columns.take()?),
        locked_until: columns.instant()?,
        run_at: columns.instant()?,
        cancel_requested: columns.instant_opt()?.is_some(),
        idempotency_key: columns.take()?,
        cache: columns.cache()?,
        deadline: columns.instant_opt()?,
        trace_context: columns.take()?,
        created_at: columns.instant()?,
    };
    let priority = columns.take()?;
    Ok(Taken { claimed, priority })
}
