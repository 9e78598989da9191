//! Sets jobs aside that cannot be read, so that one bad row does not keep every worker from the
//! good ones.
//!
//! Such a row was changed by hand, or written by a library that this one cannot follow. It
//! becomes a dead letter, reason `undecodable`, with the fault as its last error; nothing of it
//! is read for that, since the statements go by its row number.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::error::Fault;
use super::rows::json;
use super::statements::Statements;
use crate::time::Timestamp;

/// A job that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// The row number.
    pub(super) seq: i64,
    /// Which column breaks which rule.
    pub(super) fault: String,
}

/// Reads rows one by one, those that can be read and those that cannot; `seq` is the place of the
/// row number among the columns.
pub(super) fn sorted<T>(
    rows: &[SqliteRow],
    seq: usize,
    mut read: impl FnMut(&SqliteRow) -> Result<T, Fault>,
) -> Result<(Vec<T>, Vec<Unreadable>), Fault> {
    use sqlx::Row;
    let (mut good, mut bad) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match read(row) {
            Ok(value) => good.push(value),
            Err(Fault::Row(fault)) => bad.push(Unreadable {
                seq: row.try_get(seq)?,
                fault,
            }),
            Err(fault) => return Err(fault),
        }
    }
    Ok((good, bad))
}

/// Moves jobs to the dead letters, inside the open writing transaction.
pub(super) async fn set_aside(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    jobs: &[Unreadable],
) -> Result<(), Fault> {
    if jobs.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = jobs.iter().map(|job| (job.seq, &job.fault)).collect();
    statements
        .set_aside
        .query()
        .bind(json(&rows))
        .bind(now.as_millis())
        .execute(&mut *conn)
        .await?;
    Ok(())
}

/// Tells of jobs that were set aside, once that is committed.
pub(super) fn tell(jobs: &[Unreadable]) {
    for job in jobs {
        tracing::error!(
            row = job.seq,
            fault = job.fault,
            "a stored job cannot be read, so it was made a dead letter; see its row in \
             queue_finished_jobs"
        );
    }
}
