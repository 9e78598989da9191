//! Whether this build may be deployed on a store: what waits there, and whether it is run.
//!
//! A store, a registry and the queues that are served come in, a [`Deployable`] comes out. It is
//! made of what really waits, so it also sees what a shape cannot show. A row that is enqueued later
//! is not in it.

use std::fmt;

use crate::error::StoreError;
use crate::handler::{CheckFn, JobDef};
use crate::job::{JobId, JobRecord, QueueName};
use crate::pipeline::declare::Registry;
use crate::store::{Admin, Waiting};

/// Rows that are read at once.
const PAGE: usize = 500;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployable {
    /// What would be stranded, by type, queue and schema.
    pub stranded: Vec<Stranded>,
    /// Payloads that were read as a trial.
    pub tried: u64,
    /// All rows that wait, dead letters among them.
    pub waiting: u64,
}

/// Rows that this build would not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranded {
    /// Which rows, and how many.
    pub rows: Waiting,
    /// Why.
    pub reason: Reason,
}

/// Why rows would not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No job of this build has the name or the alias.
    UnknownType,
    /// A job of this build would run them, and no worker looks for them where they are: a row stays
    /// in the queue that it was enqueued to.
    QueueNotServed {
        /// The queue.
        queue: QueueName,
    },
    /// The payload is newer than what this build reads.
    NewerSchema {
        /// The highest schema that it reads.
        reads: u32,
    },
    /// This build refuses payloads that were tried: the row would become a dead letter.
    Unreadable {
        /// The first one.
        id: JobId,
        /// What the decoder said.
        error: String,
        /// Refused payloads.
        refused: u64,
        /// All payloads of these rows that were tried.
        tried: u64,
    },
    /// The job was declared by hand without a way to try a payload.
    Untried,
}

impl Deployable {
    /// Whether no live row is stranded. Dead letters wait for a person and hold nothing up.
    pub fn is_allowed(&self) -> bool {
        let mut stranded = self.stranded.iter();
        stranded.all(|stranded| stranded.rows.live() == 0)
    }
}

/// Asks a store what waits, tries the first `sample` payloads of each job type, queue and schema in
/// the order of their ids, and decides whether workers that serve `queues` run it. Changes nothing;
/// dropping it loses nothing. Holds a page of rows at a time, however many are tried.
///
/// By default a worker serves [`Registry::queues`]; name those of `WorkerBuilder::queues` instead if
/// the program names some there. Rows of other programs on the same store are stranded to this
/// build as well; their queue tells them apart.
///
/// # Errors
/// If the store cannot answer.
pub async fn deployable(
    store: &(impl Admin + ?Sized),
    registry: &Registry,
    queues: &[QueueName],
    sample: usize,
) -> Result<Deployable, StoreError> {
    let mut verdict = Deployable {
        stranded: Vec::new(),
        tried: 0,
        waiting: 0,
    };
    for rows in store.waiting().await? {
        verdict.waiting += rows.total();
        let reason = match judged(registry, queues, &rows) {
            Judged::Stranded(reason) => Some(reason),
            Judged::ToTry(check) => {
                let trial = tried(store, &rows, check, sample).await?;
                verdict.tried += trial.tried;
                trial.reason()
            }
        };
        let stranded = reason.map(|reason| Stranded { rows, reason });
        verdict.stranded.extend(stranded);
    }
    Ok(verdict)
}

/// What is known of rows without their payloads.
enum Judged {
    Stranded(Reason),
    ToTry(CheckFn),
}

fn judged(registry: &Registry, queues: &[QueueName], rows: &Waiting) -> Judged {
    let Waiting {
        job_type,
        queue,
        payload_schema,
        ..
    } = rows;
    Judged::Stranded(match registry.find(job_type) {
        None => Reason::UnknownType,
        Some(_) if !queues.contains(queue) => Reason::QueueNotServed {
            queue: queue.clone(),
        },
        Some(def) if *payload_schema > def.schema => Reason::NewerSchema { reads: def.schema },
        Some(JobDef { check: None, .. }) => Reason::Untried,
        Some(JobDef {
            check: Some(check), ..
        }) => return Judged::ToTry(*check),
    })
}

/// What became of the payloads that were tried.
#[derive(Default)]
struct Trial {
    tried: u64,
    refused: u64,
    first: Option<(JobId, String)>,
}

impl Trial {
    fn add(&mut self, job: &JobRecord, check: CheckFn) {
        self.tried += 1;
        // A type that panics while it is read is refused like any other.
        if let Err(error) = check(&job.payload, job.payload_schema) {
            self.refused += 1;
            self.first
                .get_or_insert_with(|| (job.id, error.to_string()));
        }
    }

    fn reason(self) -> Option<Reason> {
        let (id, error) = self.first?;
        Some(Reason::Unreadable {
            id,
            error,
            refused: self.refused,
            tried: self.tried,
        })
    }
}

async fn tried(
    store: &(impl Admin + ?Sized),
    rows: &Waiting,
    check: CheckFn,
    sample: usize,
) -> Result<Trial, StoreError> {
    let mut trial = Trial::default();
    let (mut left, mut after) = (sample, None);
    while left > 0 {
        let asked = left.min(PAGE);
        let (job_type, queue, schema) = (&rows.job_type, &rows.queue, rows.payload_schema);
        let page = store.waiting_sample(job_type, queue, schema, after, asked);
        let page = page.await?;
        for job in &page {
            trial.add(job, check);
        }
        if page.len() < asked {
            break;
        }
        after = page.last().map(|job| job.id);
        left -= page.len();
    }
    Ok(trial)
}

/// A line for each kind of stranded row, or one that says that there is none; the last one also says
/// how many of the payloads were tried.
impl fmt::Display for Deployable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Stranded { rows, reason } in &self.stranded {
            let Waiting {
                job_type,
                queue,
                payload_schema,
                dead_letters,
                ..
            } = rows;
            writeln!(
                f,
                "`{job_type}` schema {payload_schema} in queue `{queue}`: {} waiting, \
                 {dead_letters} dead letters: {reason}",
                rows.live()
            )?;
        }
        if self.stranded.is_empty() {
            f.write_str("nothing that waits would be stranded; ")?;
        }
        writeln!(f, "{} of {} payloads tried", self.tried, self.waiting)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType => f.write_str("no job of this build has that name or alias"),
            Self::QueueNotServed { queue } => write!(
                f,
                "no worker of this build serves queue `{queue}`; name it in `.queues(..)` until it \
                 is empty"
            ),
            Self::NewerSchema { reads } => write!(f, "this build reads up to schema {reads}"),
            Self::Unreadable {
                id,
                error,
                refused,
                tried,
            } => write!(
                f,
                "{refused} of {tried} payloads tried are refused, such as that of job {id}: {error}"
            ),
            Self::Untried => f.write_str("the job has no `check`, so its payloads were not tried"),
        }
    }
}
