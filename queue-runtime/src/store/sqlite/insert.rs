//! Stores new jobs: many plain ones in one statement, and jobs with keys in rounds.
//!
//! A round is a run of jobs of which no two share an id or a key, so what one of them meets does
//! not depend on the others: one probe looks up what all of them meet, the rule decides each,
//! and each kind of write is one statement. The second of two equal keys begins a new round and
//! sees the first. Jobs without keys need no probe.

use sqlx::sqlite::SqliteConnection;

use super::encode::Prepared;
use super::error::Fault;
use super::probe::probed;
use super::rows::{Batch, json, span_ms};
use super::statements::{Sql, Statements};
use crate::failpoint;
use crate::job::JobState;
use crate::store::Inserted;
use crate::store::round::{self, Offered as _, Plan, Probed};
use crate::time::Timestamp;

/// Bytes of JSON per statement; SQLite takes a text of at most a billion.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// Jobs per statement, so that one statement's memory stays small.
const JOBS_MAX: usize = 1_000;

/// Inserts jobs inside the open writing transaction, and answers each in order.
pub(super) async fn insert(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Option<Timestamp>,
    jobs: &[&Prepared],
) -> Result<Vec<Inserted>, Fault> {
    let mut store = Round {
        conn,
        statements,
        now: now.map(Timestamp::as_millis),
    };
    let mut answers = Vec::with_capacity(jobs.len());
    let mut rest = jobs;
    while !rest.is_empty() {
        let (jobs, later) = rest.split_at(round_len(rest));
        let probed = store.probe(jobs).await?;
        let plan = round::plan(jobs, probed)
            .ok_or_else(|| Fault::Row("the probe of an insert left a job out".to_owned()))?;
        store.write(&plan).await?;
        answers.extend(plan.answers);
        rest = later;
        failpoint::point!("insert.halfway", if !rest.is_empty());
    }
    Ok(answers)
}

/// How many jobs at the head do not meet one another, and fit into a statement.
fn round_len(jobs: &[&Prepared]) -> usize {
    let mut bytes = 0;
    let fits = jobs
        .iter()
        .take(JOBS_MAX)
        .take_while(|job| {
            bytes += job.row.len();
            bytes <= TEXT_BYTES_MAX
        })
        .count()
        .max(1);
    let meets_nothing = |job: &&Prepared| job.keys.is_none() && job.cache.is_none();
    if jobs[..fits].iter().all(meets_nothing) {
        return fits;
    }
    round::round_len(jobs, fits)
}

/// The way to write a round.
struct Round<'a> {
    conn: &'a mut SqliteConnection,
    statements: &'a Statements,
    now: Option<i64>,
}

impl Round<'_> {
    /// Looks up what the jobs with keys meet, in their order.
    async fn probe(&mut self, jobs: &[&Prepared]) -> Result<Vec<Probed>, Fault> {
        let asked: Vec<_> = jobs
            .iter()
            .filter_map(|job| {
                let keys = job.keys()?;
                Some((
                    job.id.to_string(),
                    keys.job_type.as_str(),
                    keys.idempotency.map(|asked| asked.key.as_str()),
                    keys.held(),
                    keys.window().map(|(key, _)| key),
                    job.keys.as_deref()?.payload.as_str(),
                ))
            })
            .collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.statements
            .insert_probe
            .query()
            .bind(json(&asked))
            .bind(self.now)
            .fetch_all(&mut *self.conn)
            .await?
            .iter()
            .map(probed)
            .collect()
    }

    async fn write(&mut self, plan: &Plan<'_, &Prepared>) -> Result<(), Fault> {
        let statements = self.statements;
        let mut batch = Batch::default();
        for (cache, id) in &plan.versions {
            let id = id.map(|id| id.to_string());
            batch.push(&(&cache.key, cache.version, id));
        }
        self.execute(&statements.insert_version, batch).await?;
        let mut batch = Batch::default();
        for (job, slot) in &plan.jobs {
            job.push_row(batch.next(), *slot);
        }
        self.execute(&statements.insert, batch).await?;
        let mut batch = Batch::default();
        for key in &plan.bindings {
            batch.push(&(
                key.job_type.as_str(),
                &key.asked.key,
                key.job.to_string(),
                key.asked.fingerprint.as_str(),
                span_ms(key.asked.window),
                key.final_state.map(JobState::as_str),
            ));
        }
        self.execute(&statements.insert_key, batch).await?;
        let mut batch = Batch::default();
        for window in &plan.windows {
            batch.push(&(
                window.job_type.as_str(),
                window.key,
                window.job.to_string(),
                span_ms(window.span),
            ));
        }
        self.execute(&statements.insert_window, batch).await?;
        let mut batch = Batch::default();
        for (holder, new) in &plan.rewrites {
            if let Some(keys) = &new.keys {
                batch.push(&(
                    holder.to_string(),
                    keys.payload_schema,
                    keys.priority,
                    new.cache.as_ref().map(|cache| &cache.key),
                    new.cache.as_ref().map(|cache| cache.version),
                    &keys.trace_context,
                    &keys.payload,
                ));
            }
        }
        self.execute(&statements.insert_rewrite, batch).await
    }

    /// Runs a statement on a batch, unless that is empty.
    async fn execute(&mut self, sql: &Sql, batch: Batch) -> Result<(), Fault> {
        let Some(batch) = batch.finish() else {
            return Ok(());
        };
        sql.query()
            .bind(batch)
            .bind(self.now)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }
}
