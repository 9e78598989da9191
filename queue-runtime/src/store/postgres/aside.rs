//! Sets jobs aside that cannot be read, so that one bad row does not keep every worker from the
//! good ones.
//!
//! Such a row was changed by hand, or written by a library that this one cannot follow. It
//! becomes a dead letter, reason `undecodable`, with the fault as its last error; nothing of it
//! is read for that but its id.

use sqlx::postgres::{PgConnection, PgRow};

use super::error::Fault;
use super::finish;
use super::instant::At;
use super::rows::{self, Columns, column, ids};
use super::statements::Statements;
use crate::job::{JobId, JobState};

/// A job that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) id: JobId,
    /// Which column breaks which rule.
    pub(super) fault: String,
}

/// Reads rows one by one, those that can be read and those that cannot.
pub(super) fn sorted<T>(
    found: &[PgRow],
    read: impl Fn(&PgRow) -> Result<T, Fault>,
) -> Result<(Vec<T>, Vec<Unreadable>), Fault> {
    let (mut good, mut bad) = (Vec::with_capacity(found.len()), Vec::new());
    for row in found {
        match read(row) {
            Ok(value) => good.push(value),
            Err(Fault::Row(fault)) => bad.push(Unreadable {
                id: rows::id(row)?,
                fault,
            }),
            Err(fault) => return Err(fault),
        }
    }
    Ok((good, bad))
}

/// Moves jobs to the dead letters, inside the open transaction; says whether a job that waited
/// behind one became claimable.
pub(super) async fn set_aside(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    jobs: &[Unreadable],
) -> Result<bool, Fault> {
    if jobs.is_empty() {
        return Ok(false);
    }
    let moved = statements
        .aside_final
        .query()
        .bind(ids(jobs.iter().map(|job| job.id)))
        .bind(column(jobs, |job| job.fault.clone()))
        .bind(now)
        .fetch_all(&mut *conn)
        .await?;
    let (mut ended, mut frees) = (Vec::new(), Vec::new());
    for row in &moved {
        let mut columns = Columns::of(row);
        ended.push((columns.id()?, JobState::DeadLetter));
        let job_type: String = columns.take()?;
        let dedupe_key: Option<String> = columns.take()?;
        frees.extend(dedupe_key.map(|dedupe_key| (job_type, dedupe_key)));
    }
    finish::expire_keys(conn, statements, now, &ended).await?;
    finish::promote(conn, statements, now, frees).await
}

/// Tells of jobs that were set aside, once that is committed.
pub(super) fn tell(jobs: &[Unreadable]) {
    for job in jobs {
        tracing::error!(
            job_id = %job.id,
            fault = job.fault,
            "a stored job cannot be read, so it was made a dead letter; see its row in \
             finished_jobs"
        );
    }
}
