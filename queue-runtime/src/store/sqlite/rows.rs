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
use sqlx::{Column, Decode, Error as SqlxError, Row, Sqlite, Type};

use super::error::Fault;
use crate::job::{
    About, Attempt, CacheKey, Claimed, DeadReason, JobId, JobRecord, JobState, LeaseToken,
    OutcomeKind, WorkerId,
};
use crate::store::ClaimRequest;
use crate::store::listing::Listed;
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

    /// Starts at a column further on.
    pub(super) fn at(row: &'r SqliteRow, next: usize) -> Self {
        Self { row, next }
    }

    /// Takes the next column.
    pub(super) fn take<T: Decode<'r, Sqlite> + Type<Sqlite>>(&mut self) -> Result<T, Fault> {
        let index = self.next;
        self.next += 1;
        self.row
            .try_get::<T, _>(index)
            .map_err(|error| match error {
                // What SQLite calls the column is shorter and says more than its place.
                SqlxError::ColumnDecode { source, .. } => {
                    let name = self.row.column(index).name();
                    Fault::Row(format!("stored {name}: {source}"))
                }
                error => Fault::Sql(error),
            })
    }

    /// Takes a text as it can be shown, whatever its bytes are.
    pub(super) fn shown_opt(&mut self) -> Result<Option<String>, Fault> {
        let stored: Option<&[u8]> = self.take()?;
        Ok(stored.map(|stored| String::from_utf8_lossy(stored).into_owned()))
    }

    /// Takes such a text, which is always there.
    pub(super) fn shown(&mut self) -> Result<String, Fault> {
        Ok(self.shown_opt()?.unwrap_or_default())
    }

    /// Takes the id of a job, whatever it is.
    pub(super) fn about(&mut self) -> Result<About, Fault> {
        let id = self.shown()?;
        Ok(id.parse().map_or(About::Row(id), About::OneJob))
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

/// The place of the row number among the columns of `expired.sql`, after those of a record.
pub(super) const EXPIRED_SEQ: usize = 31;

/// The place of whether the job is live among the columns of `verify_records.sql`, after those of a
/// record.
pub(super) const IS_LIVE: usize = 31;

/// The place of the row number among the columns of `claim.sql`.
pub(super) const CHOSEN_SEQ: usize = 0;

/// Reads a job of any state; the columns of `job.sql` and `finished.sql`, and those of
/// `expired.sql` and `verify_records.sql` but for their last.
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

/// Reads a row of `finished.sql`: its place in the list, whatever is in the row, and the job.
pub(super) fn finished(row: &SqliteRow) -> Result<Listed<i64, String>, Fault> {
    const FINISHED_AT: usize = 30;
    let id: &[u8] = row.try_get(0)?;
    let place = (
        row.try_get(FINISHED_AT)?,
        String::from_utf8_lossy(id).into_owned(),
    );
    Ok((
        place,
        record(row).map_err(|fault| fault.into_store("finished")),
    ))
}

/// Reads a row of `waiting_sample.sql`: its place in the list, whatever is in the row, and the job.
pub(super) fn sampled(row: &SqliteRow) -> Result<Listed<(), String>, Fault> {
    let id: &[u8] = row.try_get(0)?;
    let place = ((), String::from_utf8_lossy(id).into_owned());
    let record = record(row).map_err(|fault| fault.into_store("waiting_sample"));
    Ok((place, record))
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
        outcome: columns.known::<OutcomeKind>()?,
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

#[cfg(test)]
mod tests {
    use super::super::tests::world::World;
    use crate::error::StoreErrorKind;
    use crate::store::{Admin, Store};
    use sqlx::Executor;

    #[tokio::test]
    async fn a_stored_value_that_breaks_its_rule_is_named_and_the_store_goes_on() {
        let world = World::new().await;
        let (bad, good) = (world.job(), world.job());
        world.store.insert(&[bad.clone(), good]).await.unwrap();
        let mut conn = world.connection().await;
        let sql = format!(
            "update queue_jobs set queue = 'Not A Queue' where id = '{}'",
            bad.id
        );
        conn.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
        let error = world.store.job(bad.id).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert!(
            error.to_string().contains("stored queue \"Not A Queue\""),
            "{error}"
        );
        assert_eq!(world.claim(5).await.len(), 1);
    }
}
