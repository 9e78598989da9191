//! Stores new jobs: many plain ones in one statement, and jobs with keys in rounds.
//!
//! A round is a run of jobs of which no two share an id or a key, so what one of them meets does
//! not depend on the others: one probe looks up what all of them meet, [`decide`] answers each,
//! and each kind of write is one statement. The second of two equal keys begins a new round and
//! sees the first. Jobs without keys need no probe.

use std::collections::HashSet;

use sqlx::sqlite::SqliteConnection;

use super::decide::{Decision, Met, decide, met};
use super::encode::{Keys, Prepared};
use super::error::Fault;
use super::rows::{Batch, json, span_ms};
use super::statements::{Sql, Statements};
use crate::job::{CacheKey, Dedupe, DedupeUntil, JobId, JobState};
use crate::store::Inserted;
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
        versions: Batch::default(),
    };
    let mut answers = Vec::with_capacity(jobs.len());
    let mut rest = jobs;
    while !rest.is_empty() {
        let (round, later) = rest.split_at(round_len(rest));
        store.run(round, &mut answers).await?;
        rest = later;
    }
    store.announce().await?;
    Ok(answers)
}

/// How many jobs at the head do not meet one another.
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
    let (mut ids, mut seen) = (HashSet::new(), HashSet::new());
    let mut meets_none = |job: &Prepared| {
        let Some(keys) = job.keys.as_deref() else {
            return ids.insert(job.id);
        };
        let mut is_new =
            |kind, key: &str| seen.insert((kind, keys.job_type.clone(), key.to_owned()));
        let request = keys.idempotency.as_ref();
        let request = request.is_none_or(|asked| is_new("idempotency", &asked.key));
        let place = keys.dedupe.as_ref();
        let place = place.is_none_or(|asked| is_new("dedupe", &asked.key));
        ids.insert(job.id) && request && place
    };
    jobs[..fits]
        .iter()
        .take_while(|job| meets_none(job))
        .count()
        .max(1)
}

/// The writes of the round that is being decided, and the way to make them.
struct Round<'a> {
    conn: &'a mut SqliteConnection,
    statements: &'a Statements,
    now: Option<i64>,
    /// Cache keys and versions to announce: at the end of the batch, or before a job is stored
    /// of which nobody has looked whether it is stored already.
    versions: Batch,
}

/// What a round writes, each kind as the JSON of its statement.
#[derive(Default)]
struct Writes {
    jobs: Batch,
    keys: Batch,
    windows: Batch,
    rewrites: Batch,
}

impl Writes {
    fn job(&mut self, job: &Prepared, slot: u8) {
        job.push_row(self.jobs.next(), slot);
    }

    fn key(&mut self, keys: &Keys, job: JobId, final_state: Option<JobState>) {
        if let Some(asked) = &keys.idempotency {
            self.keys.push(&(
                keys.job_type.as_str(),
                &asked.key,
                job.to_string(),
                asked.fingerprint.as_str(),
                span_ms(asked.window),
                final_state.map(JobState::as_str),
            ));
        }
    }

    fn window(&mut self, keys: &Keys, job: JobId) {
        if let Some(dedupe) = &keys.dedupe
            && let DedupeUntil::Window(span) = dedupe.until
        {
            let job_type = keys.job_type.as_str();
            self.windows
                .push(&(job_type, &dedupe.key, job.to_string(), span_ms(span)));
        }
    }

    fn rewrite(&mut self, keys: &Keys, cache: Option<&CacheKey>, job: JobId) {
        self.rewrites.push(&(
            job.to_string(),
            keys.payload_schema,
            keys.priority,
            cache.map(|cache| &cache.key),
            cache.map(|cache| cache.version),
            &keys.trace_context,
            &keys.payload,
        ));
    }
}

impl Round<'_> {
    async fn run(&mut self, jobs: &[&Prepared], answers: &mut Vec<Inserted>) -> Result<(), Fault> {
        let mut met = self.probe(jobs).await?.into_iter();
        let mut writes = Writes::default();
        let mut unseen = false;
        for job in jobs {
            let decision = match &job.keys {
                Some(keys) => {
                    let met = met.next().ok_or_else(|| {
                        Fault::Row("the probe of an insert left a job out".to_owned())
                    })?;
                    decide(keys, &met)
                }
                None => Decision::Insert { slot: 0 },
            };
            if let Some(cache) = &job.cache
                && !matches!(decision, Decision::Conflict { .. } | Decision::Known)
            {
                // The probe has looked for jobs with keys only.
                let id = job.keys.is_none().then(|| job.id.to_string());
                unseen |= id.is_some();
                self.versions.push(&(&cache.key, cache.version, id));
            }
            answers.push(match decision {
                Decision::Known => Inserted::New { id: job.id },
                Decision::Insert { slot } => {
                    writes.job(job, slot);
                    if let Some(keys) = &job.keys {
                        writes.key(keys, job.id, None);
                        writes.window(keys, job.id);
                    }
                    Inserted::New { id: job.id }
                }
                Decision::Merge {
                    holder,
                    rewrite,
                    bind,
                } => {
                    if let Some(keys) = &job.keys {
                        if rewrite {
                            writes.rewrite(keys, job.cache.as_ref(), holder.id);
                        }
                        if bind {
                            let ended = Some(holder.state).filter(|state| state.is_final());
                            writes.key(keys, holder.id, ended);
                        }
                    }
                    Inserted::Duplicate {
                        existing: holder.id,
                        state: holder.state,
                        payload_differs: holder.payload_differs,
                    }
                }
                Decision::Conflict { existing, fields } => Inserted::Conflict { existing, fields },
            });
        }
        if unseen {
            self.announce().await?;
        }
        self.write(writes).await
    }

    /// Looks up what the jobs with keys meet, in their order.
    async fn probe(&mut self, jobs: &[&Prepared]) -> Result<Vec<Met>, Fault> {
        let asked: Vec<_> = jobs
            .iter()
            .filter_map(|job| {
                let keys = job.keys.as_deref()?;
                let dedupe = keys.dedupe.as_ref();
                let window = |d: &&Dedupe| matches!(d.until, DedupeUntil::Window(_));
                Some((
                    job.id.to_string(),
                    keys.job_type.as_str(),
                    keys.idempotency.as_ref().map(|i| i.key.as_str()),
                    dedupe.filter(|d| !window(d)).map(|d| d.key.as_str()),
                    dedupe.filter(window).map(|d| d.key.as_str()),
                    keys.payload.as_str(),
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
            .map(met)
            .collect()
    }

    async fn write(&mut self, writes: Writes) -> Result<(), Fault> {
        let statements = self.statements;
        self.execute(&statements.insert, writes.jobs).await?;
        self.execute(&statements.insert_key, writes.keys).await?;
        self.execute(&statements.insert_window, writes.windows)
            .await?;
        self.execute(&statements.insert_rewrite, writes.rewrites)
            .await
    }

    /// Raises the versions that were announced since the last time.
    async fn announce(&mut self) -> Result<(), Fault> {
        let versions = std::mem::take(&mut self.versions);
        self.execute(&self.statements.insert_version, versions)
            .await
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
