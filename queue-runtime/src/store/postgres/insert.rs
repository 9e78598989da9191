//! Stores new jobs: many plain ones in one statement, and jobs with keys in rounds.
//!
//! What the jobs of a round meet is looked up without a lock, so it may change before they are
//! stored. Unique indexes are the judges: whatever another transaction stored meanwhile makes this
//! one a lost race, and it is decided anew. Rows are written in the order of their keys, so that
//! two bulks never wait for each other.

use sqlx::postgres::PgConnection;

use super::connect::Work;
use super::error::Fault;
use super::instant::At;
use super::probe::probed;
use super::rows::{column, ids, span_ms};
use super::statements::Statements;
use crate::failpoint;
use crate::job::{Due, JobState, NewJob};
use crate::store::Inserted;
use crate::store::round::{self, Offered as _, Plan, Probed};
use crate::time::Timestamp;

/// Jobs per statement, so that one statement's memory stays small.
pub(super) const JOBS_MAX: usize = 1_000;

/// Inserts a batch: all of it is stored or nothing.
pub(super) struct Insert<'a> {
    pub(super) statements: &'a Statements,
    /// The time on a clock moved by hand, if there is one.
    pub(super) now: Option<At>,
    pub(super) jobs: &'a [NewJob],
}

impl Work for Insert<'_> {
    type Done = Vec<Inserted>;

    async fn run(&self, conn: &mut PgConnection) -> Result<Vec<Inserted>, Fault> {
        let mut answers = Vec::with_capacity(self.jobs.len());
        let mut rest = self.jobs;
        while !rest.is_empty() {
            let (jobs, later) = rest.split_at(round::round_len(rest, JOBS_MAX));
            let probed = self.probe(conn, jobs).await?;
            let plan = round::plan(jobs, probed)
                .ok_or_else(|| Fault::Row("the probe of an insert left a job out".to_owned()))?;
            self.write(conn, &plan).await?;
            answers.extend(plan.answers);
            rest = later;
            failpoint::point!("insert.halfway", if !rest.is_empty());
        }
        Ok(answers)
    }
}

/// Says whether a batch can be stored by one statement: nothing of it has to be looked up, and
/// nothing else is written with it.
pub(super) fn is_plain(jobs: &[NewJob]) -> bool {
    jobs.len() <= JOBS_MAX
        && jobs
            .iter()
            .all(|job| job.keys().is_none() && job.cache.is_none())
}

/// Says whether a batch stored a job that may run at once; `now` need not be the server's time,
/// since it only serves to tell whether a wake-up is worth while.
pub(super) fn has_due(jobs: &[NewJob], answers: &[Inserted], now: Timestamp) -> bool {
    jobs.iter()
        .zip(answers)
        .any(|(job, answer)| matches!(answer, Inserted::New { .. }) && job.due.is_at_once(now))
}

/// The answers to jobs that [`is_plain`] is true for: nothing that is stored answers for them.
pub(super) fn all_new(jobs: &[NewJob]) -> Vec<Inserted> {
    let new = |job: &NewJob| Inserted::New { id: job.id };
    jobs.iter().map(new).collect()
}

/// Inserts jobs that [`is_plain`] is true for, by one statement.
pub(super) struct InsertPlain<'a>(pub(super) Insert<'a>);

impl Work for InsertPlain<'_> {
    type Done = Vec<Inserted>;

    async fn run(&self, conn: &mut PgConnection) -> Result<Vec<Inserted>, Fault> {
        let insert = &self.0;
        let jobs: Vec<_> = insert.jobs.iter().map(|job| (job, 0)).collect();
        insert.insert(conn, &jobs).await?;
        Ok(all_new(insert.jobs))
    }
}

impl Insert<'_> {
    /// Looks up what the jobs with keys meet, in their order.
    async fn probe(&self, conn: &mut PgConnection, jobs: &[NewJob]) -> Result<Vec<Probed>, Fault> {
        let jobs: Vec<_> = jobs.iter().filter(|job| job.keys().is_some()).collect();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self
            .statements
            .insert_probe
            .query()
            .bind(ids(jobs.iter().map(|job| job.id)))
            .bind(column(&jobs, |job| job.job_type.as_str().to_owned()))
            .bind(column(&jobs, |job| {
                job.idempotency.as_ref().map(|asked| asked.key.clone())
            }))
            .bind(column(&jobs, |job| held(job).map(str::to_owned)))
            .bind(column(&jobs, |job| {
                let window = job.keys().and_then(round::Keys::window);
                window.map(|(key, _)| key.to_owned())
            }))
            .bind(column(&jobs, |job| job.payload.clone()))
            .bind(self.now)
            .fetch_all(&mut *conn)
            .await?;
        rows.iter().map(probed).collect()
    }

    async fn write(&self, conn: &mut PgConnection, plan: &Plan<'_, NewJob>) -> Result<(), Fault> {
        self.announce(conn, plan).await?;
        self.hold(conn, plan).await?;
        self.insert(conn, &plan.jobs).await?;
        self.bind_keys(conn, plan).await?;
        self.open_windows(conn, plan).await?;
        self.rewrite(conn, plan).await
    }

    /// Raises the versions of cached things.
    async fn announce(
        &self,
        conn: &mut PgConnection,
        plan: &Plan<'_, NewJob>,
    ) -> Result<(), Fault> {
        let versions = &plan.versions;
        if versions.is_empty() {
            return Ok(());
        }
        self.statements
            .insert_version
            .query()
            .bind(column(versions, |(cache, _)| cache.key.clone()))
            .bind(column(versions, |(cache, _)| stored(cache.version)))
            .bind(column(versions, |(_, id)| id.map(|id| *id.as_uuid())))
            .execute(&mut *conn)
            .await?;
        Ok(())
    }

    /// Holds the live jobs that newcomers wait behind, or that run in their place.
    async fn hold(&self, conn: &mut PgConnection, plan: &Plan<'_, NewJob>) -> Result<(), Fault> {
        if plan.behind.is_empty() && plan.instead.is_empty() {
            return Ok(());
        }
        let held = self
            .statements
            .insert_behind
            .query()
            .bind(ids(plan.behind.iter().copied()))
            .bind(ids(plan.instead.iter().copied()))
            .fetch_all(&mut *conn)
            .await?;
        match held.len() == plan.behind.len() + plan.instead.len() {
            true => Ok(()),
            false => Err(Fault::Lost),
        }
    }

    async fn insert(&self, conn: &mut PgConnection, jobs: &[(&NewJob, u8)]) -> Result<(), Fault> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut jobs = jobs.to_vec();
        jobs.sort_by_key(|(job, slot)| (held(job).map(|key| (&job.job_type, key)), *slot));
        let until_started = |job: &NewJob| {
            let until = job.dedupe.as_ref().map(|dedupe| dedupe.until);
            until == Some(crate::job::DedupeUntil::Started)
        };
        self.statements
            .insert
            .query()
            .bind(ids(jobs.iter().map(|(job, _)| job.id)))
            .bind(column(&jobs, |(job, _)| job.job_type.as_str().to_owned()))
            .bind(column(&jobs, |(job, _)| job.queue.as_str().to_owned()))
            .bind(column(&jobs, |(job, _)| i64::from(job.payload_schema)))
            .bind(column(&jobs, |(job, _)| job.priority))
            .bind(column(&jobs, |(job, _)| i64::from(job.max_attempts)))
            .bind(column(&jobs, |(job, _)| match job.due {
                Due::After(delay) => Some(span_ms(delay)),
                _ => None,
            }))
            .bind(column(&jobs, |(job, _)| match job.due {
                Due::At(at) => Some(At(at)),
                _ => None,
            }))
            .bind(column(&jobs, |(job, _)| job.deadline.map(span_ms)))
            .bind(column(&jobs, |(job, _)| until_started(job)))
            .bind(column(&jobs, |(job, _)| {
                job.idempotency.as_ref().map(|asked| asked.key.clone())
            }))
            .bind(column(&jobs, |(job, _)| {
                job.cache.as_ref().map(|cache| cache.key.clone())
            }))
            .bind(column(&jobs, |(job, _)| {
                job.cache.as_ref().map(|cache| stored(cache.version))
            }))
            .bind(column(&jobs, |(job, _)| job.trace_context.clone()))
            .bind(column(&jobs, |(job, _)| job.payload.clone()))
            .bind(column(&jobs, |(job, _)| held(job).map(str::to_owned)))
            .bind(column(&jobs, |(_, slot)| i16::from(*slot)))
            .bind(self.now)
            .execute(&mut *conn)
            .await?;
        Ok(())
    }

    async fn bind_keys(
        &self,
        conn: &mut PgConnection,
        plan: &Plan<'_, NewJob>,
    ) -> Result<(), Fault> {
        if plan.bindings.is_empty() {
            return Ok(());
        }
        let mut keys: Vec<_> = plan.bindings.iter().collect();
        keys.sort_by_key(|key| (key.job_type, &key.asked.key));
        let bound = self
            .statements
            .insert_key
            .query()
            .bind(column(&keys, |key| key.job_type.as_str().to_owned()))
            .bind(column(&keys, |key| key.asked.key.clone()))
            .bind(ids(keys.iter().map(|key| key.job)))
            .bind(column(&keys, |key| {
                key.asked.fingerprint.as_str().to_owned()
            }))
            .bind(column(&keys, |key| span_ms(key.asked.window)))
            .bind(column(&keys, |key| key.final_state.map(JobState::as_str)))
            .bind(self.now)
            .execute(&mut *conn)
            .await?;
        all(bound.rows_affected(), keys.len())
    }

    async fn open_windows(
        &self,
        conn: &mut PgConnection,
        plan: &Plan<'_, NewJob>,
    ) -> Result<(), Fault> {
        if plan.windows.is_empty() {
            return Ok(());
        }
        let mut windows: Vec<_> = plan.windows.iter().collect();
        windows.sort_by_key(|window| (window.job_type, window.key));
        let opened = self
            .statements
            .insert_window
            .query()
            .bind(column(&windows, |window| {
                window.job_type.as_str().to_owned()
            }))
            .bind(column(&windows, |window| window.key.to_owned()))
            .bind(ids(windows.iter().map(|window| window.job)))
            .bind(column(&windows, |window| span_ms(window.span)))
            .bind(self.now)
            .execute(&mut *conn)
            .await?;
        all(opened.rows_affected(), windows.len())
    }

    async fn rewrite(&self, conn: &mut PgConnection, plan: &Plan<'_, NewJob>) -> Result<(), Fault> {
        let rewrites = &plan.rewrites;
        if rewrites.is_empty() {
            return Ok(());
        }
        let rewritten = self
            .statements
            .insert_rewrite
            .query()
            .bind(ids(rewrites.iter().map(|(id, _)| *id)))
            .bind(column(rewrites, |(_, new)| i64::from(new.payload_schema)))
            .bind(column(rewrites, |(_, new)| new.priority))
            .bind(column(rewrites, |(_, new)| {
                new.cache.as_ref().map(|cache| cache.key.clone())
            }))
            .bind(column(rewrites, |(_, new)| {
                new.cache.as_ref().map(|cache| stored(cache.version))
            }))
            .bind(column(rewrites, |(_, new)| new.trace_context.clone()))
            .bind(column(rewrites, |(_, new)| new.payload.clone()))
            .bind(self.now)
            .execute(&mut *conn)
            .await?;
        all(rewritten.rows_affected(), rewrites.len())
    }
}

/// The dedupe key that a job's row holds.
fn held(job: &NewJob) -> Option<&str> {
    job.keys().and_then(round::Keys::held)
}

/// Fewer rows than were meant were written: somebody else was there first.
fn all(affected: u64, meant: usize) -> Result<(), Fault> {
    match affected == meant as u64 {
        true => Ok(()),
        false => Err(Fault::Lost),
    }
}

/// A version as it is stored; the rules keep versions within 63 bits.
fn stored(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}
