//! Applies settlements: asks once which of them still hold, then makes each kind of change in
//! one statement for the whole batch.

use std::collections::HashSet;

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::error::Fault;
use super::rows::{Columns, json, span_ms};
use super::statements::{Sql, Statements};
use crate::failpoint;
use crate::job::{
    Change, DeadReason, JobId, JobState, LeaseToken, OutcomeKind, Settled, Settlement,
};
use crate::time::Timestamp;

/// A job that a settlement may change.
struct Held {
    place: usize,
    seq: i64,
    cancel_requested: bool,
    /// The key whose waiting job takes over when this one is final.
    frees: Option<(String, String)>,
    has_keys: bool,
}

/// A job that becomes final.
pub(super) struct Final<'a> {
    pub(super) seq: i64,
    pub(super) id: JobId,
    /// The attempt that ends with it, if one does.
    pub(super) token: Option<LeaseToken>,
    pub(super) state: JobState,
    pub(super) reason: Option<DeadReason>,
    pub(super) outcome: OutcomeKind,
    pub(super) error: Option<&'a str>,
    pub(super) attempts: u32,
    pub(super) crashes: u32,
    pub(super) snoozes: u32,
    pub(super) frees: Option<(String, String)>,
    pub(super) has_keys: bool,
}

/// Settles inside the open writing transaction; also says whether a job became claimable.
pub(super) async fn settle(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    settlements: &[&Settlement],
) -> Result<(Vec<Settled>, bool), Fault> {
    let mut answers = vec![Settled::Stale; settlements.len()];
    let held = held(conn, statements, now, settlements).await?;
    let mut finals = Vec::new();
    let mut queued = Vec::new();
    let mut wake = false;
    let mut settled = HashSet::new();
    for job in held {
        let Some(settlement) = settlements.get(job.place) else {
            continue;
        };
        // The second settlement of one attempt in a batch finds the attempt ended.
        if !settled.insert(job.seq) {
            continue;
        }
        let error = settlement.error.as_deref();
        let (state, reason) = match &settlement.change {
            Change::Queued { delay } if !job.cancel_requested => {
                wake |= delay.is_zero();
                queued.push((
                    job.seq,
                    settlement.token.get(),
                    settlement.outcome.as_str(),
                    error,
                    settlement.attempts,
                    settlement.crashes,
                    settlement.snoozes,
                    span_ms(*delay),
                ));
                answers[job.place] = Settled::Applied(JobState::Queued);
                continue;
            }
            Change::Queued { .. } | Change::Cancelled => (JobState::Cancelled, None),
            Change::Done => (JobState::Done, None),
            Change::DeadLetter { reason } => (JobState::DeadLetter, Some(*reason)),
        };
        answers[job.place] = Settled::Applied(state);
        finals.push(Final {
            seq: job.seq,
            id: settlement.id,
            token: Some(settlement.token),
            state,
            reason,
            outcome: settlement.outcome,
            error,
            attempts: settlement.attempts,
            crashes: settlement.crashes,
            snoozes: settlement.snoozes,
            frees: job.frees,
            has_keys: job.has_keys,
        });
    }
    if !queued.is_empty() {
        apply(conn, &statements.settle_back, json(&queued), now).await?;
        failpoint::point!("settle.requeued");
    }
    wake |= finish(conn, statements, now, &finals).await?;
    failpoint::point!("settle.uncommitted", if !settled.is_empty());
    Ok((answers, wake))
}

/// Moves jobs to the finished ones; says whether a job that waited behind one became claimable.
pub(super) async fn finish(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    finals: &[Final<'_>],
) -> Result<bool, Fault> {
    if finals.is_empty() {
        return Ok(false);
    }
    let rows: Vec<_> = finals
        .iter()
        .map(|job| {
            (
                job.seq,
                job.token.map(LeaseToken::get),
                job.outcome.as_str(),
                job.error,
                job.attempts,
                job.crashes,
                job.snoozes,
                job.state.as_str(),
                job.reason.map(DeadReason::as_str),
            )
        })
        .collect();
    apply(conn, &statements.settle_end, json(&rows), now).await?;
    let keys: Vec<_> = finals
        .iter()
        .filter(|job| job.has_keys)
        .map(|job| (job.id.to_string(), job.state.as_str()))
        .collect();
    if !keys.is_empty() {
        apply(conn, &statements.settle_keys, json(&keys), now).await?;
    }
    let frees: Vec<_> = finals.iter().filter_map(|job| job.frees.as_ref()).collect();
    if frees.is_empty() {
        return Ok(false);
    }
    let promoted = statements
        .settle_promote
        .query()
        .bind(json(&frees))
        .bind(now.as_millis())
        .fetch_all(&mut *conn)
        .await?;
    failpoint::point!("promote.uncommitted", if !promoted.is_empty());
    Ok(!promoted.is_empty())
}

/// Finds the jobs that the settlements still may change, in the order of the batch.
async fn held(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    settlements: &[&Settlement],
) -> Result<Vec<Held>, Fault> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let asked: Vec<_> = settlements
        .iter()
        .map(|s| (s.id.to_string(), s.token.get(), u8::from(s.only_if_expired)))
        .collect();
    statements
        .settle
        .query()
        .bind(json(&asked))
        .bind(now.as_millis())
        .fetch_all(&mut *conn)
        .await?
        .iter()
        .map(|row| {
            let mut columns = Columns::of(row);
            Ok(Held {
                place: columns.number("place")?,
                seq: columns.take()?,
                cancel_requested: columns.take()?,
                frees: frees(&mut columns)?,
                has_keys: columns.take()?,
            })
        })
        .collect()
}

fn frees(columns: &mut Columns<'_>) -> Result<Option<(String, String)>, Fault> {
    // What is no text frees nothing, and must not keep the settlements of others from their job.
    let job_type = columns.shown_opt()?;
    let dedupe_key = columns.shown_opt()?;
    Ok(job_type.zip(dedupe_key))
}

async fn apply(
    conn: &mut SqliteConnection,
    sql: &Sql,
    batch: String,
    now: Timestamp,
) -> Result<(), Fault> {
    sql.query()
        .bind(batch)
        .bind(now.as_millis())
        .execute(&mut *conn)
        .await?;
    Ok(())
}

/// A job as `find.sql` gives it.
pub(super) struct Found {
    pub(super) seq: i64,
    pub(super) state: JobState,
    pub(super) job_type: String,
    pub(super) dedupe_key: Option<String>,
    pub(super) dedupe_slot: u8,
    pub(super) attempts: u32,
    pub(super) crashes: u32,
    pub(super) snoozes: u32,
}

/// Reads a row of `find.sql`.
pub(super) fn found(row: &SqliteRow) -> Result<Found, Fault> {
    let mut columns = Columns::of(row);
    Ok(Found {
        seq: columns.take()?,
        state: columns.parsed("status")?,
        job_type: columns.take()?,
        dedupe_key: columns.take()?,
        dedupe_slot: columns.number("dedupe_slot")?,
        attempts: columns.number("attempts")?,
        crashes: columns.number("crashes")?,
        snoozes: columns.number("snoozes")?,
    })
}
