//! Whether this build may be deployed on a store: what waits there, and whether it is read.
//!
//! Counts and samples of the waiting rows come in, a [`Deployable`] comes out. It is made of what
//! really waits, so it also sees what a shape cannot show. A row that is enqueued later is not in
//! it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use async_trait::async_trait;

use crate::error::StoreError;
use crate::handler::JobDef;
use crate::job::{JobId, JobRecord, JobType};
use crate::pipeline::declare::Registry;
use crate::store::{Admin, Waiting};

/// The rows of one job type and payload schema that are not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRows {
    /// The stored name.
    pub job_type: JobType,
    /// The number of the payload's shape.
    pub schema: u32,
    /// Queued or processing.
    pub live: u64,
    /// Dead letters, which wait for a replay.
    pub dead_letters: u64,
}

/// A waiting row's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The job.
    pub id: JobId,
    /// The stored name.
    pub job_type: JobType,
    /// The number of the payload's shape.
    pub schema: u32,
    /// The typed arguments as JSON text.
    pub payload: String,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployable {
    /// What would be stranded, in the order of the counts.
    pub stranded: Vec<Stranded>,
    /// Payloads that were read as a trial.
    pub tried: usize,
}

/// Rows that this build would not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranded {
    /// Which rows, and how many.
    pub rows: WaitingRows,
    /// Why.
    pub reason: Reason,
}

/// Why rows would not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No job of this build has the name or the alias.
    UnknownType,
    /// The payload is newer than what this build reads.
    NewerSchema {
        /// The highest schema that it reads.
        reads: u32,
    },
    /// This build refuses sampled payloads: the row would become a dead letter.
    Unreadable {
        /// The first one.
        id: JobId,
        /// What the decoder said.
        error: String,
        /// Refused samples.
        refused: usize,
        /// All samples of these rows.
        sampled: usize,
    },
    /// The job was declared by hand without a way to try a payload.
    Untried,
}

impl Deployable {
    /// Whether no live row is stranded. Dead letters wait for a person and hold nothing up.
    pub fn is_allowed(&self) -> bool {
        self.stranded.iter().all(|stranded| stranded.rows.live == 0)
    }
}

/// Decides from counts and samples.
pub fn judge(registry: &Registry, waiting: &[WaitingRows], samples: &[Sample]) -> Deployable {
    let mut verdict = Deployable {
        stranded: Vec::new(),
        tried: 0,
    };
    for rows in waiting {
        let of_rows = |s: &&Sample| s.job_type == rows.job_type && s.schema == rows.schema;
        let samples: Vec<&Sample> = samples.iter().filter(of_rows).collect();
        let reason = match registry.find(&rows.job_type) {
            None => Some(Reason::UnknownType),
            Some(def) if rows.schema > def.schema => {
                Some(Reason::NewerSchema { reads: def.schema })
            }
            Some(def) => {
                verdict.tried += samples.len();
                try_all(def, &samples)
            }
        };
        let rows = rows.clone();
        verdict
            .stranded
            .extend(reason.map(|reason| Stranded { rows, reason }));
    }
    verdict
}

fn try_all(def: &JobDef, samples: &[&Sample]) -> Option<Reason> {
    let Some(check) = def.check else {
        return Some(Reason::Untried);
    };
    let refused = |sample: &&Sample| {
        // Code of the user that panics ends one attempt of a worker, and here one trial.
        let tried = || check(&sample.payload, sample.schema).map_err(|error| error.to_string());
        let tried = catch_unwind(AssertUnwindSafe(tried));
        let error = tried
            .unwrap_or_else(|_| Err("it panicked".to_owned()))
            .err();
        error.map(|error| (sample.id, error))
    };
    let mut refused = samples.iter().filter_map(refused);
    let (id, error) = refused.next()?;
    Some(Reason::Unreadable {
        id,
        error,
        refused: 1 + refused.count(),
        sampled: samples.len(),
    })
}

/// What is asked of a store about its waiting rows.
#[async_trait]
pub trait Rows: Send + Sync {
    /// Counts the rows that are not finished, and dead letters, by job type and payload schema.
    async fn waiting(&self) -> Result<Vec<WaitingRows>, StoreError>;

    /// Returns at most `count` such rows of one job type and schema in the order of their ids,
    /// behind the id `after`.
    async fn waiting_sample(
        &self,
        job_type: &JobType,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError>;
}

#[async_trait]
impl<S: Admin + Send + Sync + ?Sized> Rows for S {
    async fn waiting(&self) -> Result<Vec<WaitingRows>, StoreError> {
        let rows = |waiting: Waiting| WaitingRows {
            live: waiting.queued + waiting.processing,
            dead_letters: waiting.dead_letters,
            job_type: waiting.job_type,
            schema: waiting.payload_schema,
        };
        let waiting = Admin::waiting(self).await?;
        Ok(waiting.into_iter().map(rows).collect())
    }

    async fn waiting_sample(
        &self,
        job_type: &JobType,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        Admin::waiting_sample(self, job_type, schema, after, count).await
    }
}

/// Rows that are asked for at once.
const PAGE: usize = 500;

/// Asks a store what waits, tries at most `sample` payloads of each job type and schema, and
/// decides. Changes nothing; dropping it loses nothing.
///
/// # Errors
/// If the store cannot answer.
pub async fn deployable(
    rows: &(impl Rows + ?Sized),
    registry: &Registry,
    sample: usize,
) -> Result<Deployable, StoreError> {
    let waiting = rows.waiting().await?;
    let mut samples = Vec::new();
    // Of the others it is known without a payload what becomes of them.
    let is_tried = |kind: &&WaitingRows| {
        let def = registry.find(&kind.job_type);
        def.is_some_and(|def| kind.schema <= def.schema && def.check.is_some())
    };
    for kind in waiting.iter().filter(is_tried) {
        let mut left = sample;
        let mut after = None;
        while left > 0 {
            let asked = left.min(PAGE);
            let page = rows
                .waiting_sample(&kind.job_type, kind.schema, after, asked)
                .await?;
            let got = page.len();
            after = page.last().map(|row| row.id);
            samples.extend(page.into_iter().map(|row| Sample {
                id: row.id,
                job_type: row.job_type,
                schema: row.payload_schema,
                payload: row.payload,
            }));
            left = left.saturating_sub(got);
            if got < asked {
                break;
            }
        }
    }
    Ok(judge(registry, &waiting, &samples))
}

/// One line for each kind of stranded row; a line that says so if there is none.
impl fmt::Display for Deployable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stranded.is_empty() {
            return writeln!(
                f,
                "nothing that waits would be stranded; {} payloads tried",
                self.tried
            );
        }
        for Stranded { rows, reason } in &self.stranded {
            let WaitingRows {
                job_type,
                schema,
                live,
                dead_letters,
            } = rows;
            writeln!(
                f,
                "`{job_type}` schema {schema}: {live} waiting, {dead_letters} dead letters: {reason}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType => f.write_str("no job of this build has that name or alias"),
            Self::NewerSchema { reads } => write!(f, "this build reads up to schema {reads}"),
            Self::Unreadable {
                id,
                error,
                refused,
                sampled,
            } => write!(
                f,
                "{refused} of {sampled} payloads tried are refused, such as that of job {id}: {error}"
            ),
            Self::Untried => f.write_str("the job has no `check`, so its payloads were not tried"),
        }
    }
}
