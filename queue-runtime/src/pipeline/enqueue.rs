//! Turns a typed job into a stored one: encode, validate, insert, answer.
//!
//! Nothing is stored unless everything is valid, and no handler ever runs here. A duplicate is
//! an answer, not an error.

mod prepare;
pub(crate) mod edit;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use self::prepare::{Options, prepare};
use crate::backend::Backend;
use crate::error::{EnqueueError, StoreError, StoreErrorKind};
use crate::failpoint;
use crate::handler::{Job, JobContext};
use crate::job::{Due, JobEvent, JobId, JobRecord, JobState, NewJob};
use crate::rules::limits;
use crate::store::{Inserted, Tx};
use crate::time::Timestamp;

/// Where a job can be enqueued: a `&Queue`, or a `&JobContext` inside a handler.
#[diagnostic::on_unimplemented(
    message = "cannot enqueue a job into `{Self}`",
    label = "not a queue",
    note = "pass `&queue`, or `&ctx` inside a handler"
)]
pub trait EnqueueTarget<'q> {
    /// Returns what lies behind.
    #[doc(hidden)]
    fn backend(self) -> &'q Backend;
}

impl<'q> EnqueueTarget<'q> for &'q JobContext {
    fn backend(self) -> &'q Backend {
        JobContext::backend(self)
    }
}

/// One enqueue on its way; options are added, then it is awaited.
///
/// Dropping the future leaves it unknown whether the job was stored.
///
/// ```
/// use std::time::Duration;
///
/// use queue_runtime::{Queue, job};
///
/// #[job]
/// async fn send_reminder(order: u32) {
///     println!("order {order} is waiting");
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = Queue::open("memory:").await?;
/// let sent = send_reminder::enqueue(&queue, 77)
///     .delay(Duration::from_hours(24))
///     .priority(10)
///     .retries(2)
///     .dedupe_key("order-77")
///     .await?;
/// assert!(!sent.duplicate);
///
/// let again = send_reminder::enqueue(&queue, 77).dedupe_key("order-77").await?;
/// assert!(again.duplicate && again.id == sent.id);
/// # Ok(())
/// # }
/// ```
#[must_use = "an enqueue does nothing until it is awaited"]
#[derive(Debug)]
pub struct Enqueue<'q, J> {
    backend: &'q Backend,
    id: JobId,
    id_is_given: bool,
    payload: J,
    options: Options,
    tx: Option<Tx<'q>>,
}

/// The answer to an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The job that stands for the request: the new one, or the one that existed.
    pub id: JobId,
    /// Whether the job existed already.
    pub duplicate: bool,
    /// Where that job stands.
    pub state: JobState,
    /// Whether an existing job had another payload than the request.
    pub payload_differs: bool,
}

impl<'q, J: Job> Enqueue<'q, J> {
    /// Starts an enqueue with the options of the job's declaration, under a new id.
    pub fn new(queue: impl EnqueueTarget<'q>, payload: J) -> Self {
        let backend = queue.backend();
        let id = backend.seam().job_id();
        Self {
            backend,
            id,
            id_is_given: false,
            payload,
            options: Options::default(),
            tx: None,
        }
    }

    /// Stores the job under this id. An enqueue whose outcome is unknown can be repeated under
    /// the same id: if it was stored, the repeat changes nothing. An id that belongs to another
    /// job is refused (inside a transaction that cannot be seen: the other job stays as it is).
    pub fn id(mut self, id: JobId) -> Self {
        self.id = id;
        self.id_is_given = true;
        self
    }

    /// Returns the id that the job will have, for repeating an enqueue whose answer is lost.
    pub fn job_id(&self) -> JobId {
        self.id
    }

    /// Stores the job in the caller's transaction: visible with its commit, gone with its
    /// rollback. Takes `&mut` of an SQLite or Postgres transaction or connection of sqlx 0.9, on
    /// the same database as the queue; one of another sqlx version does not compile. A connection
    /// without an open transaction stores the job at once.
    ///
    /// ```no_run
    /// use queue_runtime::{Queue, job};
    ///
    /// #[job]
    /// async fn send_welcome(user_id: i64) {
    ///     println!("welcome, user {user_id}");
    /// }
    ///
    /// async fn sign_up(
    ///     pool: &sqlx::SqlitePool,
    ///     queue: &Queue,
    ///     email: &str,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     // `immediate` takes the write lock at once, so that a read cannot go stale before.
    ///     let mut tx = pool.begin_with("begin immediate").await?;
    ///     let inserted = sqlx::query("insert into users (email) values (?)")
    ///         .bind(email)
    ///         .execute(&mut *tx)
    ///         .await?;
    ///     let user_id = inserted.last_insert_rowid();
    ///     send_welcome::enqueue(queue, user_id).in_tx(&mut tx).await?;
    ///     tx.commit().await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// Without a pool of its own a program begins with [`Queue::begin`](crate::Queue::begin).
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub fn in_tx(mut self, tx: impl Into<Tx<'q>>) -> Self {
        self.tx = Some(tx.into());
        self
    }

    /// Runs not before `delay` after it is stored; at most ten years.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.due = Due::After(delay);
        self
    }

    /// Runs not before this instant, which is at once if it has passed; at most ten years ahead.
    pub fn run_at(mut self, at: impl Into<Timestamp>) -> Self {
        self.options.due = Due::At(at.into());
        self
    }

    /// Runs before jobs of lower priority in its queue; -100 to 100.
    pub fn priority(mut self, priority: i16) -> Self {
        self.options.priority = Some(priority);
        self
    }

    /// Waits in another queue than its declaration says.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.options.queue = Some(queue.into());
        self
    }

    /// Is tried again this often after its first attempt; at most 1,000.
    pub fn retries(mut self, retries: u32) -> Self {
        self.options.retries = Some(retries);
        self
    }

    /// Is not tried again this long after it is stored.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = Some(deadline);
        self
    }

    /// At most one live job of this type has this key; 1 to 1,024 bytes.
    pub fn dedupe_key(mut self, key: impl Into<String>) -> Self {
        self.options.dedupe_key = Some(key.into());
        self
    }

    /// Repeats of the request with this key answer with this job; 1 to 1,024 bytes.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.options.idempotency_key = Some(key.into());
        self
    }

    /// Remembers the idempotency key this long instead of as the declaration says.
    pub fn idempotency_for(mut self, window: Duration) -> Self {
        self.options.idempotency_for = Some(window);
        self
    }

    async fn send(self) -> Result<Enqueued, EnqueueError> {
        let new = prepare(self.backend, self.id, &self.payload, &self.options)?;
        if self.id_is_given
            && self.tx.is_none()
            && let Some(stored) = self.backend.store().job(self.id).await?
        {
            return repeated(&new, &stored);
        }
        let is_staged = self.tx.is_some();
        failpoint::point!("enqueue.unsent");
        let inserted = match self.tx {
            None => {
                self.backend
                    .store()
                    .insert(std::slice::from_ref(&new))
                    .await?
            }
            Some(tx) => {
                self.backend
                    .insert_in(tx, std::slice::from_ref(&new))
                    .await?
            }
        };
        failpoint::point!("enqueue.staged", if is_staged);
        failpoint::point!("enqueue.unanswered", if !is_staged);
        let answer = inserted.into_iter().next().ok_or_else(no_answer)?;
        let told = (!is_staged).then_some(self.backend);
        conclude(told, &new, answer)
    }
}

impl<'q, J: Job> IntoFuture for Enqueue<'q, J> {
    type Output = Result<Enqueued, EnqueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'q>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// A bulk of jobs of one type on its way; see `Queue::enqueue_all`.
#[must_use = "an enqueue does nothing until it is awaited"]
#[derive(Debug)]
pub struct EnqueueAll<'q, J> {
    backend: &'q Backend,
    payloads: Vec<J>,
    tx: Option<Tx<'q>>,
}

impl<'q, J: Job> EnqueueAll<'q, J> {
    pub(crate) fn new(backend: &'q Backend, payloads: Vec<J>) -> Self {
        Self {
            backend,
            payloads,
            tx: None,
        }
    }

    /// Stores the jobs in the caller's transaction.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub fn in_tx(mut self, tx: impl Into<Tx<'q>>) -> Self {
        self.tx = Some(tx.into());
        self
    }

    async fn send(self) -> Result<Vec<Result<Enqueued, EnqueueError>>, EnqueueError> {
        if self.payloads.len() > limits::BULK_MAX {
            return Err(EnqueueError::OutOfRange {
                what: "bulk",
                value: self.payloads.len().to_string(),
                rule: format!("must be at most {} jobs; split it", limits::BULK_MAX),
            });
        }
        let options = Options::default();
        let mut jobs = Vec::with_capacity(self.payloads.len());
        for (index, payload) in self.payloads.iter().enumerate() {
            let prepared = prepare(
                self.backend,
                self.backend.seam().job_id(),
                payload,
                &options,
            );
            jobs.push(prepared.map_err(|e| EnqueueError::Item {
                index,
                source: Box::new(e),
            })?);
        }
        let is_staged = self.tx.is_some();
        failpoint::point!("enqueue.unsent");
        let inserted = match self.tx {
            None => self.backend.store().insert(&jobs).await?,
            Some(tx) => self.backend.insert_in(tx, &jobs).await?,
        };
        failpoint::point!("enqueue.staged", if is_staged);
        failpoint::point!("enqueue.unanswered", if !is_staged);
        if inserted.len() != jobs.len() {
            return Err(no_answer().into());
        }
        let told = (!is_staged).then_some(self.backend);
        Ok(jobs
            .iter()
            .zip(inserted)
            .map(|(new, answer)| conclude(told, new, answer))
            .collect())
    }
}

impl<'q, J: Job> IntoFuture for EnqueueAll<'q, J> {
    type Output = Result<Vec<Result<Enqueued, EnqueueError>>, EnqueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'q>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Answers an enqueue under an id that is stored already: it must be this job.
fn repeated(new: &NewJob, stored: &JobRecord) -> Result<Enqueued, EnqueueError> {
    let id = new.id;
    if stored.job_type != new.job_type || stored.payload != new.payload {
        return Err(EnqueueError::IdTaken { id });
    }
    Ok(Enqueued {
        id,
        duplicate: true,
        state: stored.state,
        payload_differs: false,
    })
}

/// Turns the store's answer into the caller's, and tells of it unless it stands in a transaction
/// that may yet be rolled back.
fn conclude(
    told: Option<&Backend>,
    new: &NewJob,
    answer: Inserted,
) -> Result<Enqueued, EnqueueError> {
    let job_type = new.job_type.clone();
    let report = |event| {
        if let Some(backend) = told {
            backend.events().report(event);
            new.cache
                .iter()
                .for_each(|newest| backend.cache().announce(newest));
        }
    };
    match answer {
        Inserted::New { id } => {
            report(JobEvent::Enqueued {
                id,
                job_type,
                queue: new.queue.clone(),
            });
            let state = JobState::Queued;
            Ok(Enqueued {
                id,
                duplicate: false,
                state,
                payload_differs: false,
            })
        }
        Inserted::Duplicate {
            existing,
            state,
            payload_differs,
        } => {
            report(JobEvent::Deduplicated {
                id: existing,
                job_type,
            });
            Ok(Enqueued {
                id: existing,
                duplicate: true,
                state,
                payload_differs,
            })
        }
        Inserted::Conflict { existing, fields } => {
            Err(EnqueueError::IdempotencyConflict { existing, fields })
        }
    }
}

fn no_answer() -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        "insert",
        "the store did not answer for each job",
    )
}
