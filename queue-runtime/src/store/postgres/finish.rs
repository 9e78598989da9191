//! Ends jobs: moves them to the finished ones, lets their idempotency keys run out, and lets what
//! waited behind them take their places.

use std::collections::HashSet;

use sqlx::postgres::{PgConnection, PgRow};

use super::error::Fault;
use super::instant::At;
use super::rows::{Columns, column, ids};
use super::statements::Statements;
use crate::failpoint;
use crate::job::{DeadReason, JobId, JobState, LeaseToken, OutcomeKind};

/// Jobs of one statement; its file bounds it as well, so that the planner knows.
pub(super) const BATCH_MAX: usize = 10_000;

/// A job under one token.
pub(super) type AttemptKey = (JobId, Option<LeaseToken>);

/// A job that becomes final.
pub(super) struct Final<'a> {
    pub(super) id: JobId,
    /// The attempt that ends with it; `None` for a job that waits.
    pub(super) token: Option<LeaseToken>,
    pub(super) state: JobState,
    pub(super) reason: Option<DeadReason>,
    pub(super) outcome: OutcomeKind,
    pub(super) error: Option<&'a str>,
    pub(super) attempts: u32,
    pub(super) crashes: u32,
    pub(super) snoozes: u32,
    /// Whether somebody must have asked to call the job off.
    pub(super) only_if_cancelled: bool,
}

impl Final<'_> {
    pub(super) fn key(&self) -> AttemptKey {
        (self.id, self.token)
    }

    /// Says whether it is a success as most are: `settle_done.sql` writes the rest of it as
    /// constants.
    fn is_plain(&self) -> bool {
        self.token.is_some()
            && self.state == JobState::Done
            && self.outcome == OutcomeKind::Success
            && self.reason.is_none()
            && self.error.is_none()
            && self.crashes == 0
            && !self.only_if_cancelled
    }
}

/// What became of jobs that were to become final.
pub(super) struct Ended {
    /// Those that did.
    pub(super) jobs: HashSet<AttemptKey>,
    /// Whether a job that waited behind one became claimable.
    pub(super) wake: bool,
}

/// Moves jobs to the finished ones, lets their idempotency keys run out, and lets the jobs that
/// waited behind them take their places.
pub(super) async fn finish(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    finals: &[Final<'_>],
) -> Result<Ended, Fault> {
    let mut ended = Ended {
        jobs: HashSet::new(),
        wake: false,
    };
    for finals in finals.chunks(BATCH_MAX) {
        finish_batch(conn, statements, now, finals, &mut ended).await?;
    }
    Ok(ended)
}

async fn finish_batch(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    finals: &[Final<'_>],
    ended: &mut Ended,
) -> Result<(), Fault> {
    let (plain, mut others): (Vec<_>, Vec<_>) = finals.iter().partition(|job| job.is_plain());
    let mut gone = settle_done(conn, statements, now, &plain).await?;
    // A success that differs from what the row says, or whose token is not the current one.
    let moved: HashSet<AttemptKey> = gone.iter().map(|gone| gone.key).collect();
    others.extend(plain.into_iter().filter(|job| !moved.contains(&job.key())));
    gone.extend(settle_final(conn, statements, now, &others).await?);
    let keyed: HashSet<AttemptKey> = gone
        .iter()
        .filter(|gone| gone.has_idempotency_keys)
        .map(|gone| gone.key)
        .collect();
    let with_keys: Vec<_> = finals
        .iter()
        .filter(|job| keyed.contains(&job.key()))
        .map(|job| (job.id, job.state))
        .collect();
    expire_keys(conn, statements, now, &with_keys).await?;
    ended.jobs.extend(gone.iter().map(|gone| gone.key));
    let frees = gone.into_iter().filter_map(|gone| gone.frees).collect();
    ended.wake |= promote(conn, statements, now, frees).await?;
    Ok(())
}

/// A job that was moved to the finished ones.
struct Gone {
    key: AttemptKey,
    /// Its type and dedupe key, if another job may wait behind it.
    frees: Option<(String, String)>,
    has_idempotency_keys: bool,
}

/// Moves jobs that [`Final::is_plain`] is true for.
async fn settle_done(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    finals: &[&Final<'_>],
) -> Result<Vec<Gone>, Fault> {
    if finals.is_empty() {
        return Ok(Vec::new());
    }
    let rows = statements
        .settle_done
        .query()
        .bind(ids(finals.iter().map(|job| job.id)))
        .bind(column(finals, |job| job.token.map(LeaseToken::get)))
        .bind(column(finals, |job| i64::from(job.attempts)))
        .bind(column(finals, |job| i64::from(job.snoozes)))
        .bind(now)
        .fetch_all(&mut *conn)
        .await?;
    rows.iter().map(gone).collect()
}

/// Moves jobs that end in any way.
async fn settle_final(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    finals: &[&Final<'_>],
) -> Result<Vec<Gone>, Fault> {
    if finals.is_empty() {
        return Ok(Vec::new());
    }
    let rows = statements
        .settle_final
        .query()
        .bind(ids(finals.iter().map(|job| job.id)))
        .bind(column(finals, |job| job.token.map(LeaseToken::get)))
        .bind(column(finals, |job| job.outcome.as_str()))
        .bind(column(finals, |job| job.error.map(str::to_owned)))
        .bind(column(finals, |job| i64::from(job.attempts)))
        .bind(column(finals, |job| i64::from(job.crashes)))
        .bind(column(finals, |job| i64::from(job.snoozes)))
        .bind(column(finals, |job| job.state.as_str()))
        .bind(column(finals, |job| job.reason.map(DeadReason::as_str)))
        .bind(column(finals, |job| job.only_if_cancelled))
        .bind(now)
        .fetch_all(&mut *conn)
        .await?;
    rows.iter().map(gone).collect()
}

/// Reads a row of `settle_done.sql` or `settle_final.sql`.
fn gone(row: &PgRow) -> Result<Gone, Fault> {
    let mut columns = Columns::of(row);
    let id = columns.id()?;
    let token = columns.take::<Option<i64>>()?.map(LeaseToken::new);
    let job_type: String = columns.take()?;
    let dedupe_key: Option<String> = columns.take()?;
    Ok(Gone {
        key: (id, token),
        frees: dedupe_key.map(|dedupe_key| (job_type, dedupe_key)),
        has_idempotency_keys: columns.take()?,
    })
}

/// Lets the idempotency keys of jobs that became final run out.
pub(super) async fn expire_keys(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    jobs: &[(JobId, JobState)],
) -> Result<(), Fault> {
    if jobs.is_empty() {
        return Ok(());
    }
    statements
        .settle_keys
        .query()
        .bind(ids(jobs.iter().map(|(id, _)| *id)))
        .bind(column(jobs, |(_, state)| state.as_str()))
        .bind(now)
        .execute(&mut *conn)
        .await?;
    Ok(())
}

/// Lets the jobs that wait behind dedupe keys take the places of those that ended; says whether
/// there is one.
pub(super) async fn promote(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    mut frees: Vec<(String, String)>,
) -> Result<bool, Fault> {
    if frees.is_empty() {
        return Ok(false);
    }
    // In one order for everybody, so that two settlements never wait for each other.
    frees.sort();
    let (job_types, dedupe_keys): (Vec<_>, Vec<_>) = frees.into_iter().unzip();
    let promoted = statements
        .settle_promote
        .query()
        .bind(job_types)
        .bind(dedupe_keys)
        .bind(now)
        .fetch_all(&mut *conn)
        .await?;
    failpoint::point!("promote.uncommitted", if !promoted.is_empty());
    Ok(!promoted.is_empty())
}
