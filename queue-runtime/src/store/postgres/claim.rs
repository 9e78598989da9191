//! Takes due jobs: one statement finds the lanes in which they wait, unless those are remembered,
//! and one chooses jobs from them, starts their attempts and puts them under a lease.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::{PgConnection, PgRow};

use super::aside::{self, Unreadable};
use super::error::Fault;
use super::instant::At;
use super::lanes;
use super::rows::{self, Lane, Taken, column, ids, limit, span_ms};
use super::statements::Statements;
use crate::failpoint;
use crate::job::Claimed;
use crate::store::ClaimRequest;

/// Jobs that one claim takes at most, whatever it asks for. With as many to spare it stays within
/// the bounds that `claim.sql` names.
const JOBS_MAX: usize = 1_000;

/// How often one claim asks anew after it has set jobs aside.
const ROUNDS_MAX: usize = 4;

/// What a claim asks for, as its statements take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) queues: Vec<String>,
    pub(super) job_types: Vec<String>,
    pub(super) schemas: Vec<i64>,
}

impl Asked {
    /// Writes a request down.
    pub(super) fn new(request: &ClaimRequest) -> Self {
        let (queues, job_types) = request.folded();
        let queues = queues.into_iter().map(str::to_owned).collect();
        let (job_types, schemas) = job_types
            .into_iter()
            .map(|(job_type, schema)| (job_type.to_owned(), i64::from(schema)))
            .unzip();
        Self {
            queues,
            job_types,
            schemas,
        }
    }

    /// Says whether another request asks for the same jobs, in whatever order of the queues: a
    /// worker turns them round.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let queues = |asked: &Self| asked.queues.iter().cloned().collect::<HashSet<_>>();
        self.job_types == other.job_types
            && self.schemas == other.schemas
            && queues(self) == queues(other)
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
    /// The lanes to go on from, if all that was asked for was taken from them.
    pub(super) lanes: Option<Vec<Lane>>,
}

/// A claim inside its transaction.
#[derive(Clone, Copy)]
pub(super) struct Claim<'a> {
    pub(super) statements: &'a Statements,
    pub(super) now: Option<At>,
    pub(super) request: &'a ClaimRequest,
    pub(super) asked: &'a Asked,
    /// The lanes that are remembered from the claim before.
    pub(super) known: Option<&'a [Lane]>,
    /// How many jobs to choose beyond what is taken.
    pub(super) spare: usize,
}

impl Claim<'_> {
    /// The most jobs that this claim takes.
    pub(super) fn wanted(&self) -> usize {
        self.request.limit.min(JOBS_MAX)
    }

    /// Claims inside the open transaction. Jobs that cannot be read are set aside, and others
    /// taken in their place, up to a bound.
    pub(super) async fn run(&self, conn: &mut PgConnection) -> Result<Claiming, Fault> {
        let mut taken = Vec::new();
        let mut done = Claiming::default();
        let mut known = self.known.map(<[Lane]>::to_vec);
        for _ in 0..ROUNDS_MAX {
            let is_fresh = known.is_none();
            let mut lanes = match known.take() {
                Some(lanes) => lanes,
                None => self.lanes(conn).await?,
            };
            let found = self.take(conn, &lanes, &taken).await?;
            let (good, unreadable) = aside::sorted(&found, rows::taken)?;
            let keys: Vec<_> = good
                .iter()
                .map(|taken| (&taken.claimed, taken.priority))
                .collect();
            lanes::advance(&mut lanes, &keys);
            taken.extend(good);
            done.wake |= aside::set_aside(conn, self.statements, self.now, &unreadable).await?;
            let is_clean = unreadable.is_empty();
            done.set_aside.extend(unreadable);
            if taken.len() == self.wanted() {
                done.lanes = Some(lanes);
                break;
            }
            // What was remembered may leave jobs out: only lanes that were just found tell that
            // there are no more.
            if is_fresh && is_clean {
                break;
            }
        }
        done.claimed = ordered(taken, self.asked);
        failpoint::point!("claim.uncommitted", if !done.claimed.is_empty());
        Ok(done)
    }

    /// Finds the lanes.
    async fn lanes(&self, conn: &mut PgConnection) -> Result<Vec<Lane>, Fault> {
        let found = self
            .statements
            .lanes
            .query()
            .bind(self.asked.queues.clone())
            .bind(self.asked.job_types.clone())
            .bind(self.asked.schemas.clone())
            .bind(self.now)
            .fetch_all(&mut *conn)
            .await?;
        found.iter().map(rows::lane).collect()
    }

    /// Takes jobs from lanes, beside those that were taken before.
    async fn take(
        &self,
        conn: &mut PgConnection,
        lanes: &[Lane],
        taken: &[Taken],
    ) -> Result<Vec<PgRow>, Fault> {
        let left = self.wanted() - taken.len();
        if lanes.is_empty() || left == 0 {
            return Ok(Vec::new());
        }
        let suspects = self.request.suspects;
        let are_taken = taken
            .iter()
            .filter(|taken| taken.claimed.crashes >= suspects.crashes)
            .count();
        let suspects_left = suspects.limit.min(JOBS_MAX).saturating_sub(are_taken);
        let place = |lane: &Lane| {
            let place = self
                .asked
                .queues
                .iter()
                .position(|queue| *queue == lane.queue);
            limit(place.unwrap_or(usize::MAX))
        };
        let rows = self
            .statements
            .claim
            .query()
            .bind(column(lanes, place))
            .bind(column(lanes, |lane| lane.queue.clone()))
            .bind(column(lanes, |lane| lane.job_type.clone()))
            .bind(column(lanes, |lane| lane.payload_schema))
            .bind(column(lanes, |lane| lane.crashes))
            .bind(column(lanes, |lane| lane.priority))
            .bind(column(lanes, |lane| At(lane.run_at)))
            .bind(ids(lanes.iter().map(|lane| lane.id)))
            .bind(limit(left))
            .bind(limit(self.spare))
            .bind(i64::from(suspects.crashes))
            .bind(limit(suspects_left))
            .bind(self.request.worker.as_str().to_owned())
            .bind(span_ms(self.request.lease))
            .bind(self.now)
            .fetch_all(&mut *conn)
            .await?;
        Ok(rows)
    }
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
