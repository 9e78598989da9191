//! What operators do to single jobs, and the pruning of what is old.

use sqlx::sqlite::SqliteConnection;

use super::aside::{self, Unreadable};
use super::error::Fault;
use super::rows::{self, Columns, json, limit, span_ms};
use super::settle::{Final, Found, finish, found};
use super::statements::Statements;
use crate::failpoint;
use crate::job::{JobId, JobRecord, JobState, OutcomeKind};
use crate::store::{Cancelling, Pruned, Retention};
use crate::time::Timestamp;

/// Calls a job off inside the open writing transaction; also says whether a job that waited
/// behind it became claimable.
pub(super) async fn cancel(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    id: JobId,
) -> Result<(Cancelling, bool), Fault> {
    let Some(job) = find(conn, statements, id).await? else {
        return Ok((Cancelling::NotFound, false));
    };
    match job.state {
        JobState::Queued => {
            let frees = job.dedupe_key.filter(|_| job.dedupe_slot == 0);
            let cancelled = Final {
                seq: job.seq,
                id,
                token: None,
                state: JobState::Cancelled,
                reason: None,
                outcome: OutcomeKind::Cancelled,
                error: None,
                attempts: job.attempts,
                crashes: job.crashes,
                snoozes: job.snoozes,
                frees: frees.map(|key| (job.job_type, key)),
                has_keys: true,
            };
            let wake = finish(conn, statements, now, &[cancelled]).await?;
            Ok((Cancelling::Cancelled, wake))
        }
        JobState::Processing => {
            statements
                .cancel
                .query()
                .bind(job.seq)
                .bind(now.as_millis())
                .execute(&mut *conn)
                .await?;
            Ok((Cancelling::Requested, false))
        }
        JobState::Done | JobState::DeadLetter | JobState::Cancelled => {
            Ok((Cancelling::AlreadyFinal(job.state), false))
        }
    }
}

/// Lists the jobs whose lease has run out, inside the open writing transaction, and sets those
/// aside that cannot be read.
pub(super) async fn expired(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    count: usize,
) -> Result<(Vec<JobRecord>, Vec<Unreadable>), Fault> {
    let rows = statements
        .expired
        .query()
        .bind(limit(count))
        .bind(now.as_millis())
        .fetch_all(&mut *conn)
        .await?;
    let (expired, unreadable) = aside::sorted(&rows, rows::EXPIRED_SEQ, rows::record)?;
    aside::set_aside(conn, statements, now, &unreadable).await?;
    Ok((expired, unreadable))
}

/// Removes what is old inside the open writing transaction.
pub(super) async fn prune(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    retention: &Retention,
    count: usize,
) -> Result<Pruned, Fault> {
    let jobs = statements
        .prune
        .query()
        .bind(limit(count))
        .bind(now.as_millis())
        .bind(span_ms(retention.done))
        .bind(span_ms(retention.dead_letter))
        .bind(span_ms(retention.cancelled))
        .fetch_all(&mut *conn)
        .await?;
    let seqs = jobs
        .iter()
        .map(|row| Columns::of(row).take::<i64>())
        .collect::<Result<Vec<_>, _>>()?;
    if !seqs.is_empty() {
        statements
            .prune_attempts
            .query()
            .bind(json(&seqs))
            .execute(&mut *conn)
            .await?;
    }
    let keys = statements
        .prune_keys
        .query()
        .bind(limit(count))
        .bind(now.as_millis())
        .fetch_all(&mut *conn)
        .await?;
    let windows = statements
        .prune_windows
        .query()
        .bind(limit(count))
        .bind(now.as_millis())
        .fetch_all(&mut *conn)
        .await?;
    failpoint::point!("prune.uncommitted", if !seqs.is_empty());
    Ok(Pruned {
        jobs: seqs.len() as u64,
        idempotency_keys: keys.len() as u64,
        dedupe_windows: windows.len() as u64,
    })
}

/// Looks a job up in both tables.
pub(super) async fn find(
    conn: &mut SqliteConnection,
    statements: &Statements,
    id: JobId,
) -> Result<Option<Found>, Fault> {
    let row = statements
        .find
        .query()
        .bind(id.to_string())
        .fetch_optional(&mut *conn)
        .await?;
    row.as_ref().map(found).transpose()
}
