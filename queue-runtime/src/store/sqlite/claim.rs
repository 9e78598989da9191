//! Takes due jobs: chooses them, starts their attempts, puts them under a lease.

use sqlx::sqlite::SqliteConnection;

use super::aside::{self, Unreadable};
use super::error::Fault;
use super::rows::{self, Chosen, json, limit, span_ms};
use super::statements::Statements;
use crate::job::Claimed;
use crate::store::ClaimRequest;
use crate::time::Timestamp;

/// Jobs that one claim takes at most, whatever it asks for: one parameter's worth.
const JOBS_MAX: usize = 10_000;

/// How often one claim chooses anew after it has set jobs aside.
const ROUNDS_MAX: usize = 4;

/// What a claim asks for, as its statements take it.
pub(super) struct Asked {
    pub(super) queues: String,
    pub(super) job_types: String,
}

impl Asked {
    /// Writes a request down.
    pub(super) fn new(request: &ClaimRequest) -> Self {
        let (queues, job_types) = request.folded();
        let job_types: Vec<(&str, u32)> = job_types.into_iter().collect();
        Self {
            queues: json(&queues),
            job_types: json(&job_types),
        }
    }
}

/// Claims inside the open writing transaction; also returns the jobs that were set aside because
/// they cannot be read. Others are taken in their place, up to a bound.
pub(super) async fn claim(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    request: &ClaimRequest,
) -> Result<(Vec<Claimed>, Vec<Unreadable>), Fault> {
    let mut set_aside = Vec::new();
    if request.limit == 0 {
        return Ok((Vec::new(), set_aside));
    }
    for _ in 0..ROUNDS_MAX {
        let (chosen, unreadable) = choose(conn, statements, now, request).await?;
        aside::set_aside(conn, statements, now, &unreadable).await?;
        let is_complete = unreadable.is_empty();
        set_aside.extend(unreadable);
        if is_complete {
            let claimed = take(conn, statements, now, request, chosen).await?;
            return Ok((claimed, set_aside));
        }
    }
    // Nothing was taken yet; what can be read is there for the next claim.
    Ok((Vec::new(), set_aside))
}

/// Chooses the jobs to take, and finds those among them that cannot be read.
async fn choose(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    request: &ClaimRequest,
) -> Result<(Vec<Chosen>, Vec<Unreadable>), Fault> {
    let asked = Asked::new(request);
    let rows = statements
        .claim
        .query()
        .bind(asked.queues)
        .bind(asked.job_types)
        .bind(limit(request.limit.min(JOBS_MAX)))
        .bind(request.suspects.crashes)
        .bind(limit(request.suspects.limit.min(JOBS_MAX)))
        .bind(now.as_millis())
        .fetch_all(&mut *conn)
        .await?;
    let mut places = 0..;
    aside::sorted(&rows, rows::CHOSEN_SEQ, |row| {
        rows::chosen(row, places.next().unwrap_or(0), request, now)
    })
}

/// Starts the attempts of the chosen jobs and puts them under their leases.
async fn take(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    request: &ClaimRequest,
    chosen: Vec<Chosen>,
) -> Result<Vec<Claimed>, Fault> {
    let Some(first) = chosen.first() else {
        return Ok(Vec::new());
    };
    let newest_token = first.newest_token;
    let seqs = json(&chosen.iter().map(|job| job.seq).collect::<Vec<_>>());
    statements
        .claim_start
        .query()
        .bind(seqs)
        .bind(newest_token)
        .bind(request.worker.as_str().to_owned())
        .bind(now.as_millis())
        .bind(span_ms(request.lease))
        .execute(&mut *conn)
        .await?;
    Ok(chosen.into_iter().map(|job| job.claimed).collect())
}
