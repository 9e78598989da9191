//! Rows to values and values to rows: the only place that knows the order of columns.
//!
//! Whole batches travel as one JSON parameter of arrays, so that a batch costs one statement.
//! What is stored is checked as it is read: a value that breaks its rule is a [`Fault::Row`] that
//! names the column and the rule, never the value of a payload.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};

use super::error::Fault;
use crate::job::{
    Attempt, CacheKey, Claimed, DeadReason, JobId, JobRecord, JobState, LeaseToken, OutcomeKind,
    WorkerId,
};
use crate::store::ClaimRequest;
use crate::time::Timestamp;

/// Writes a batch as the JSON text that statements take.
pub(super) fn json<T: Serialize + ?Sized>(batch: &T) -> String {
    serde_json::to_string(batch).expect("numbers and text always have a JSON form")
}

/// A batch that grows row by row.
#[derive(Default)]
pub(super) struct Batch(String);

impl Batch {
    /// Begins the next row, to be written as a JSON array.
    pub(super) fn next(&mut self) -> &mut String {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        &mut self.0
    }

    /// Adds a row.
    pub(super) fn push<T: Serialize>(&mut self, row: &T) {
        let row = json(row);
        self.next().push_str(&row);
    }

    /// Returns the JSON text, or `None` if there is no row.
    pub(super) fn finish(mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(']');
        Some(self.0)
    }
}

/// A span as statements take it.
pub(super) fn span_ms(span: Duration) -> i64 {
    crate::time::millis(span)
}

/// A count as statements take it; more than SQLite can count means no bound.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Reads the columns of one row from left to right.
pub(super) struct Columns<'r> {
    row: &'r SqliteRow,
    next: usize,
}

impl<'r> Columns<'r> {
    /// Starts at the leftmost column.
    pub(super) fn of(row: &'r SqliteRow) -> Self {
        Self { row, next: 0 }
    }

    /// Takes the next column.
    pub(super) fn take<T: Decode<'r, Sqlite> + Type<Sqlite>>(&mut self) -> Result<T, Fault> {
        let index = self.next;
        self.next += 1;
        Ok(self.row.try_get::<T, _>(index)?)
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

    /// Takes an instant.
    pub(super) fn instant(&mut self) -> Result<Timestamp, Fault> {
        Ok(Timestamp::from_millis(self.take()?))
    }

    /// Takes an instant, if there is one.
    fn instant_opt(&mut self) -> Result<Option<Timestamp>, Fault> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_millis))
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

/// Reads a job of any state; the columns of `job.sql` and `expired.sql`.
pub(super) fn record(row: &SqliteRow) -> Result<JobRecord, Fault> {
    let mut columns = Columns::of(row);
    Ok(JobRecord {
        id: columns.parsed("id")?,
        job_type: columns.parsed("job_type")?,
        queue: columns.parsed("queue")?,
        payload: columns.take()?,
        payload_schema: columns.number("payload_schema")?,
        state: columns.parsed::<JobState>("status")?,
        priority: columns.number("priority")?,
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
        dedupe_slot: columns.number("dedupe_slot")?,
        idempotency_key: columns.take()?,
        cache: columns.cache()?,
        deadline: columns.instant_opt()?,
        last_outcome: columns.parsed_opt::<OutcomeKind>("last_outcome")?,
        dead_reason: columns.parsed_opt::<DeadReason>("dead_reason")?,
        last_error: columns.take()?,
        trace_context: columns.take()?,
        created_at: columns.instant()?,
        updated_at: columns.instant()?,
        started_at: columns.instant_opt()?,
        finished_at: columns.instant_opt()?,
    })
}

/// Reads an attempt; the columns of `attempts.sql`.
pub(super) fn attempt(row: &SqliteRow) -> Result<Attempt, Fault> {
    let mut columns = Columns::of(row);
    Ok(Attempt {
        token: LeaseToken::new(columns.take()?),
        number: columns.number("number")?,
        worker: columns.parsed::<WorkerId>("worker")?,
        started_at: columns.instant()?,
        finished_at: columns.instant_opt()?,
        outcome: columns.parsed_opt::<OutcomeKind>("outcome")?,
        error: columns.take()?,
    })
}

/// A job that a claim has chosen, as it was before it is taken.
pub(super) struct Chosen {
    /// The row number of the job.
    pub(super) seq: i64,
    /// The newest token that the store has given.
    pub(super) newest_token: i64,
    /// The job as the worker will get it.
    pub(super) claimed: Claimed,
}

/// Reads a chosen job; the columns of `claim.sql`. `place` is its place in the batch.
pub(super) fn chosen(
    row: &SqliteRow,
    place: i64,
    request: &ClaimRequest,
    now: Timestamp,
) -> Result<Chosen, Fault> {
    let mut columns = Columns::of(row);
    let seq = columns.take()?;
    let newest_token: i64 = columns.take::<Option<i64>>()?.unwrap_or(0);
    let id: JobId = columns.parsed("id")?;
    Ok(Chosen {
        seq,
        newest_token,
        claimed: Claimed {
            id,
            job_type: columns.parsed("job_type")?,
            queue: columns.parsed("queue")?,
            payload: columns.take()?,
            payload_schema: columns.number("payload_schema")?,
            attempt: columns.number::<u32>("attempts")?.saturating_add(1),
            max_attempts: columns.number("max_attempts")?,
            crashes: columns.number("crashes")?,
            snoozes: columns.number("snoozes")?,
            generation: columns.number("generation")?,
            token: LeaseToken::new(newest_token + 1 + place),
            locked_until: now.saturating_add(request.lease),
            claimed_at: now,
            run_at: columns.instant()?,
            cancel_requested: columns.take::<Option<i64>>()?.is_some(),
            idempotency_key: columns.take()?,
            cache: columns.cache()?,
            deadline: columns.instant_opt()?,
            trace_context: columns.take()?,
            created_at: columns.instant()?,
        },
    })
}
