//! Applies settlements: each kind of change in one statement for the whole batch, guarded by
//! `(id, token)` in the statement itself.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::{PgConnection, PgRow};

use super::error::Fault;
use super::finish::{AttemptKey, BATCH_MAX, Final, finish};
use super::instant::At;
use super::rows::{Columns, column, ids, span_ms};
use super::statements::Statements;
use crate::failpoint;
use crate::job::{Change, JobState, LeaseToken, Settled, Settlement};

/// Settles inside the open transaction; also says whether a job became claimable.
pub(super) async fn settle(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    settlements: &[Settlement],
) -> Result<(Vec<Settled>, bool), Fault> {
    let rescuable = rescuable(conn, statements, now, settlements).await?;
    let (mut queued, mut finals) = (Vec::new(), Vec::new());
    // The places of those that are tried, by what they are about.
    let mut tried = HashMap::new();
    for (place, settlement) in settlements.iter().enumerate() {
        let is_free = !settlement.only_if_expired || rescuable.contains(&key(settlement));
        // The second settlement of one attempt in a batch finds the attempt ended.
        if !is_free || tried.contains_key(&key(settlement)) {
            continue;
        }
        tried.insert(key(settlement), place);
        match &settlement.change {
            Change::Queued { delay } => queued.push((settlement, span_ms(*delay))),
            _ => finals.push(ending(settlement)),
        }
    }
    let mut answers = vec![Settled::Stale; settlements.len()];
    let waiting = back(conn, statements, now, &queued).await?;
    failpoint::point!("settle.requeued", if !waiting.is_empty());
    let mut wake = false;
    for (settlement, delay) in &queued {
        if waiting.contains(&key(settlement)) {
            answers[tried[&key(settlement)]] = Settled::Applied(JobState::Queued);
            wake |= *delay == 0;
        } else {
            finals.push(ending(settlement));
        }
    }
    let ended = finish(conn, statements, now, &finals).await?;
    for job in &finals {
        if ended.jobs.contains(&job.key()) {
            answers[tried[&job.key()]] = Settled::Applied(job.state);
        }
    }
    failpoint::point!("settle.uncommitted", if answers.iter().any(|answer| *answer != Settled::Stale));
    Ok((answers, wake | ended.wake))
}

pub(super) fn key(settlement: &Settlement) -> AttemptKey {
    (settlement.id, Some(settlement.token))
}

/// What a settlement that ends a job does to it; one that sends it back ends it only if somebody
/// has asked to call it off.
fn ending(settlement: &Settlement) -> Final<'_> {
    let (state, reason) = match &settlement.change {
        Change::Queued { .. } | Change::Cancelled => (JobState::Cancelled, None),
        Change::Done => (JobState::Done, None),
        Change::DeadLetter { reason } => (JobState::DeadLetter, Some(*reason)),
    };
    Final {
        id: settlement.id,
        token: Some(settlement.token),
        state,
        reason,
        outcome: settlement.outcome,
        error: settlement.error.as_deref(),
        attempts: settlement.attempts,
        crashes: settlement.crashes,
        snoozes: settlement.snoozes,
        only_if_cancelled: matches!(settlement.change, Change::Queued { .. }),
    }
}

/// Locks the jobs that the rescues among the settlements still may change.
async fn rescuable(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    settlements: &[Settlement],
) -> Result<HashSet<AttemptKey>, Fault> {
    let mut rescues: Vec<_> = settlements
        .iter()
        .filter(|settlement| settlement.only_if_expired)
        .collect();
    if rescues.is_empty() {
        return Ok(HashSet::new());
    }
    rescues.sort_by_key(|settlement| settlement.id);
    let rows = statements
        .settle
        .query()
        .bind(ids(rescues.iter().map(|rescue| rescue.id)))
        .bind(column(&rescues, |rescue| rescue.token.get()))
        .bind(now)
        .fetch_all(&mut *conn)
        .await?;
    rows.iter()
        .map(|row| named(&mut Columns::of(row)))
        .collect()
}

/// Sends jobs back to wait; returns those that do.
async fn back(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    queued: &[(&Settlement, i64)],
) -> Result<HashSet<AttemptKey>, Fault> {
    let mut waiting = HashSet::new();
    for queued in queued.chunks(BATCH_MAX) {
        let rows = back_batch(conn, statements, now, queued).await?;
        for row in &rows {
            waiting.insert(named(&mut Columns::of(row))?);
        }
    }
    Ok(waiting)
}

async fn back_batch(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    queued: &[(&Settlement, i64)],
) -> Result<Vec<PgRow>, Fault> {
    let rows = statements
        .settle_queued
        .query()
        .bind(ids(queued.iter().map(|(settlement, _)| settlement.id)))
        .bind(column(queued, |(settlement, _)| settlement.token.get()))
        .bind(column(queued, |(settlement, _)| {
            settlement.outcome.as_str()
        }))
        .bind(column(queued, |(settlement, _)| settlement.error.clone()))
        .bind(column(queued, |(settlement, _)| {
            i64::from(settlement.attempts)
        }))
        .bind(column(queued, |(settlement, _)| {
            i64::from(settlement.crashes)
        }))
        .bind(column(queued, |(settlement, _)| {
            i64::from(settlement.snoozes)
        }))
        .bind(column(queued, |(_, delay)| *delay))
        .bind(now)
        .fetch_all(&mut *conn)
        .await?;
    Ok(rows)
}

pub(super) fn named(columns: &mut Columns<'_>) -> Result<AttemptKey, Fault> {
    Ok((columns.id()?, Some(LeaseToken::new(columns.take()?))))
}
