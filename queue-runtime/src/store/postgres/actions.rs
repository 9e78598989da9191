//! What the verbs do inside their transactions, one type each: a transaction that others were in
//! the way of is begun anew.

use sqlx::postgres::PgConnection;

use super::aside::{self, Unreadable};
use super::claim::{Claim, Claiming};
use super::connect::Work;
use super::error::Fault;
use super::finish::{Final, finish};
use super::free::settle_free;
use super::instant::At;
use super::rows::{self, Columns, ids, limit, span_ms};
use super::settle::settle;
use super::statements::Statements;
use crate::failpoint;
use crate::job::{JobId, JobRecord, JobState, OutcomeKind, Settled, Settlement};
use crate::store::{Cancelling, Pruned, Retention};

/// What every action needs.
#[derive(Clone, Copy)]
pub(super) struct Inside<'a> {
    pub(super) statements: &'a Statements,
    /// The time on a clock moved by hand, if there is one.
    pub(super) now: Option<At>,
}

/// Settles, then claims; either may be missing.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'a> {
    pub(super) inside: Inside<'a>,
    pub(super) settlements: &'a [Settlement],
    pub(super) claim: Option<Claim<'a>>,
    /// Whether settlements go on without what somebody else holds, or wait for it.
    pub(super) skips_held: bool,
}

/// What an exchange came to.
pub(super) struct Exchanged {
    pub(super) settled: Vec<Settled>,
    pub(super) claiming: Claiming,
    /// Whether a job became claimable.
    pub(super) wake: bool,
}

impl Work for Exchange<'_> {
    type Done = Exchanged;

    async fn run(&self, conn: &mut PgConnection) -> Result<Exchanged, Fault> {
        let Inside { statements, now } = self.inside;
        let (settled, wake) = match self.settlements {
            [] => (Vec::new(), false),
            settlements if self.skips_held => {
                settle_free(conn, statements, now, settlements).await?
            }
            settlements => settle(conn, statements, now, settlements).await?,
        };
        let claiming = match self.claim {
            // What became claimable may stand in a lane, or before a place, that is not remembered.
            Some(claim) if wake => {
                Claim {
                    known: None,
                    ..claim
                }
                .run(conn)
                .await?
            }
            Some(claim) => claim.run(conn).await?,
            None => Claiming::default(),
        };
        let wake = wake | claiming.wake;
        Ok(Exchanged {
            settled,
            claiming,
            wake,
        })
    }
}

/// Calls a job off; also says whether a job that waited behind it became claimable.
pub(super) struct Cancel<'a> {
    pub(super) inside: Inside<'a>,
    pub(super) id: JobId,
}

impl Work for Cancel<'_> {
    type Done = (Cancelling, bool);

    async fn run(&self, conn: &mut PgConnection) -> Result<(Cancelling, bool), Fault> {
        let Inside { statements, now } = self.inside;
        let Some(job) = find(conn, statements, self.id).await? else {
            return Ok((Cancelling::NotFound, false));
        };
        match job.state {
            JobState::Queued => {
                let cancelled = Final {
                    id: self.id,
                    token: None,
                    state: JobState::Cancelled,
                    reason: None,
                    outcome: OutcomeKind::Cancelled,
                    error: None,
                    attempts: job.attempts,
                    crashes: job.crashes,
                    snoozes: job.snoozes,
                    only_if_cancelled: false,
                };
                let ended = finish(conn, statements, now, &[cancelled]).await?;
                Ok((Cancelling::Cancelled, ended.wake))
            }
            JobState::Processing => {
                statements
                    .cancel
                    .query()
                    .bind(*self.id.as_uuid())
                    .bind(now)
                    .execute(&mut *conn)
                    .await?;
                Ok((Cancelling::Requested, false))
            }
            JobState::Done | JobState::DeadLetter | JobState::Cancelled => {
                Ok((Cancelling::AlreadyFinal(job.state), false))
            }
        }
    }
}

/// Sets jobs aside whose lease has run out and that cannot be read, and lists the others.
pub(super) struct Expired<'a> {
    pub(super) inside: Inside<'a>,
    pub(super) limit: usize,
}

impl Work for Expired<'_> {
    type Done = (Vec<JobRecord>, Vec<Unreadable>, bool);

    async fn run(&self, conn: &mut PgConnection) -> Result<Self::Done, Fault> {
        let Inside { statements, now } = self.inside;
        let found = statements
            .expired
            .query()
            .bind(limit(self.limit))
            .bind(now)
            .fetch_all(&mut *conn)
            .await?;
        let (expired, unreadable) = aside::sorted(&found, rows::record)?;
        let wake = aside::set_aside(conn, statements, now, &unreadable).await?;
        Ok((expired, unreadable, wake))
    }
}

/// Removes what is old.
pub(super) struct Prune<'a> {
    pub(super) inside: Inside<'a>,
    pub(super) retention: &'a Retention,
    pub(super) limit: usize,
}

impl Work for Prune<'_> {
    type Done = Pruned;

    async fn run(&self, conn: &mut PgConnection) -> Result<Pruned, Fault> {
        let Inside { statements, now } = self.inside;
        let jobs = statements
            .prune
            .query()
            .bind(limit(self.limit))
            .bind(now)
            .bind(span_ms(self.retention.done))
            .bind(span_ms(self.retention.dead_letter))
            .bind(span_ms(self.retention.cancelled))
            .fetch_all(&mut *conn)
            .await?;
        let jobs = jobs.iter().map(rows::id).collect::<Result<Vec<_>, _>>()?;
        if !jobs.is_empty() {
            statements
                .prune_attempts
                .query()
                .bind(ids(jobs.iter().copied()))
                .execute(&mut *conn)
                .await?;
            statements
                .prune_bound
                .query()
                .bind(ids(jobs.iter().copied()))
                .bind(now)
                .execute(&mut *conn)
                .await?;
        }
        let keys = statements
            .prune_keys
            .query()
            .bind(limit(self.limit))
            .bind(now)
            .fetch_all(&mut *conn)
            .await?;
        let windows = statements
            .prune_windows
            .query()
            .bind(limit(self.limit))
            .bind(now)
            .fetch_all(&mut *conn)
            .await?;
        failpoint::point!("prune.uncommitted", if !jobs.is_empty());
        Ok(Pruned {
            jobs: jobs.len() as u64,
            idempotency_keys: keys.len() as u64,
            dedupe_windows: windows.len() as u64,
        })
    }
}

/// A job as `find.sql` gives it.
pub(super) struct Found {
    pub(super) state: JobState,
    pub(super) job_type: String,
    pub(super) dedupe_key: Option<String>,
    attempts: u32,
    crashes: u32,
    snoozes: u32,
}

/// Looks a job up and holds it if it is live. Looks twice, since a job that became final while the
/// first look waited for it is seen by neither half of that look.
pub(super) async fn find(
    conn: &mut PgConnection,
    statements: &Statements,
    id: JobId,
) -> Result<Option<Found>, Fault> {
    for _ in 0..2 {
        let row = statements
            .find
            .query()
            .bind(*id.as_uuid())
            .fetch_optional(&mut *conn)
            .await?;
        if let Some(row) = row {
            let mut columns = Columns::of(&row);
            return Ok(Some(Found {
                state: columns.parsed("status")?,
                job_type: columns.take()?,
                dedupe_key: columns.take()?,
                attempts: columns.number("attempts")?,
                crashes: columns.number("crashes")?,
                snoozes: columns.number("snoozes")?,
            }));
        }
    }
    Ok(None)
}
