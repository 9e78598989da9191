//! Takes due jobs: one statement chooses them, starts their attempts and puts them under a lease.

use std::collections::{BTreeMap, HashMap};

use sqlx::postgres::PgConnection;

use super::aside::{self, Unreadable};
use super::error::Fault;
use super::rows::{self, At, Taken, limit, span_ms};
use super::statements::Statements;
use crate::job::Claimed;
use crate::store::ClaimRequest;

/// Jobs that one claim takes at most, whatever it asks for: their leases begin together.
const JOBS_MAX: usize = 10_000;

/// How often one claim asks anew after it has set jobs aside.
const ROUNDS_MAX: usize = 4;

/// The fewest jobs that a claim chooses beyond what it takes, for those that others take first.
const SPARE_MIN: usize = 10;

/// What a claim asks for, as its statements take it.
pub(super) struct Asked {
    pub(super) queues: Vec<String>,
    pub(super) job_types: Vec<String>,
    pub(super) schemas: Vec<i64>,
}

impl Asked {
    /// Writes a request down; naming a queue or type twice means naming it once.
    pub(super) fn new(request: &ClaimRequest) -> Self {
        let mut queues: Vec<String> = Vec::with_capacity(request.queues.len());
        for queue in &request.queues {
            if !queues.iter().any(|named| named == queue.as_str()) {
                queues.push(queue.as_str().to_owned());
            }
        }
        let mut highest: BTreeMap<&str, u32> = BTreeMap::new();
        for (job_type, schema) in &request.job_types {
            let known = highest.entry(job_type.as_str()).or_default();
            *known = (*schema).max(*known);
        }
        let (job_types, schemas) = highest
            .into_iter()
            .map(|(job_type, schema)| (job_type.to_owned(), i64::from(schema)))
            .unzip();
        Self {
            queues,
            job_types,
            schemas,
        }
    }
}

/// What a claim came to.
#[derive(Default)]
pub(super) struct Claiming {
    pub(super) claimed: Vec<Claimed>,
    /// Jobs that were set aside because they cannot be read.
    pub(super) set_aside: Vec<Unreadable>,
    /// Whether a job that waited behind one of those became claimable.
    pub(super) wake: bool,
}

/// Claims inside the open transaction. Jobs that cannot be read are set aside, and others taken in
/// their place, up to a bound.
pub(super) async fn claim(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    request: &ClaimRequest,
) -> Result<Claiming, Fault> {
    let asked = Asked::new(request);
    let mut all = Vec::new();
    let mut done = Claiming::default();
    let wanted = request.limit.min(JOBS_MAX);
    let mut suspects = request.suspects.limit.min(JOBS_MAX);
    for _ in 0..ROUNDS_MAX {
        let left = wanted - all.len();
        if left == 0 {
            break;
        }
        let found = statements
            .claim
            .query()
            .bind(asked.queues.clone())
            .bind(asked.job_types.clone())
            .bind(asked.schemas.clone())
            .bind(limit(left))
            .bind(limit(left.max(SPARE_MIN)))
            .bind(i64::from(request.suspects.crashes))
            .bind(limit(suspects))
            .bind(request.worker.as_str().to_owned())
            .bind(span_ms(request.lease))
            .bind(now)
            .fetch_all(&mut *conn)
            .await?;
        let (taken, unreadable) = aside::sorted(&found, rows::taken)?;
        let took = taken
            .iter()
            .filter(|taken| taken.claimed.crashes >= request.suspects.crashes)
            .count();
        suspects = suspects.saturating_sub(took);
        all.extend(taken);
        done.wake |= aside::set_aside(conn, statements, now, &unreadable).await?;
        let is_complete = unreadable.is_empty();
        done.set_aside.extend(unreadable);
        if is_complete {
            break;
        }
    }
    done.claimed = ordered(all, &asked);
    Ok(done)
}

/// Puts jobs in the order to run them; the statement returns them in none.
fn ordered(mut taken: Vec<Taken>, asked: &Asked) -> Vec<Claimed> {
    let places: HashMap<&str, usize> = asked
        .queues
        .iter()
        .enumerate()
        .map(|(place, queue)| (queue.as_str(), place))
        .collect();
    taken.sort_by_key(|Taken { claimed, priority }| {
        (
            places.get(claimed.queue.as_str()).copied(),
            std::cmp::Reverse(*priority),
            claimed.run_at,
            claimed.id,
        )
    });
    taken.into_iter().map(|taken| taken.claimed).collect()
}
