//! The handle that producers and workers share.

mod opening;
mod replay;
mod verify;
mod waiting;

use std::sync::Arc;

use tokio::sync::broadcast;

pub use self::opening::Opening;

use crate::backend::Backend;
use crate::cache::Cache;
use crate::error::{JobActionError, StoreError};
use crate::handler::Job;
use crate::job::{Attempt, JobEvent, JobId, JobRecord, JobState};
use crate::pipeline::enqueue::{Enqueue, EnqueueAll, EnqueueTarget};
use crate::seam::Seam;
use crate::store::{Cancelling, Counts, Store};

/// An opened queue: enqueues jobs, answers questions about them, and is what a worker runs on.
///
/// Cheap to clone; clones share connections, events and the in-process cache.
///
/// ```
/// use queue_runtime::{JobState, Queue, job};
///
/// #[job]
/// async fn send_welcome(user_id: i64) {
///     println!("welcome, user {user_id}");
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = Queue::open("memory:").await?;
/// let sent = send_welcome::enqueue(&queue, 42).await?;
///
/// let job = queue.job(sent.id).await?.expect("it was just enqueued");
/// assert_eq!((job.state, job.attempts), (JobState::Queued, 0));
/// assert_eq!(queue.cancel(sent.id).await?, JobState::Cancelled);
/// queue.replay(sent.id).await?;
/// assert_eq!(queue.counts().await?.queued, 1);
/// assert!(queue.dead_letters(50).await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Queue {
    backend: Arc<Backend>,
}

impl Queue {
    /// Opens the store that an address names; await what this returns.
    ///
    /// - `sqlite://jobs.db` (relative) or `sqlite:///var/lib/app/jobs.db` (absolute) is a file,
    ///   made if it is missing, with its tables.
    /// - `postgres://user:password@host/database` is a schema of a Postgres database, `queue` unless
    ///   the address says `?schema=another`. Its tables must be there, or are made with
    ///   [`migrate`](Opening::migrate).
    /// - `memory:` lives and dies with the process.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use queue_runtime::Queue;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let queue = Queue::open(format!("sqlite://{}/jobs.db", folder.path().display())).await?;
    /// assert_eq!(queue.counts().await?.total(), 0);
    /// queue.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OpenError`](crate::OpenError), when it is awaited, if the address names no store, or the
    /// store cannot be opened.
    pub fn open(url: impl AsRef<str>) -> Opening {
        Opening::of_url(url.as_ref())
    }

    /// Opens a store with options of its own: `SqliteOptions` or `PostgresOptions`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(options: impl Into<Opening>) -> Opening {
        options.into()
    }

    /// Opens the queue in the database of an sqlx 0.9 pool, `SqlitePool` or `PgPool`, with
    /// connections of its own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_pool(pool: impl Into<Opening>) -> Opening {
        pool.into()
    }

    /// Opens the store that the environment names in `QUEUE_URL`, or else in `DATABASE_URL`.
    ///
    /// # Errors
    /// [`OpenError`](crate::OpenError), when it is awaited, if neither is set, or as
    /// [`open`](Self::open).
    pub fn from_env() -> Opening {
        Opening::of_environment()
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    fn on(backend: Arc<Backend>) -> Self {
        Self { backend }
    }

    /// Makes a queue in memory that lives and dies with the process.
    pub fn in_memory() -> Self {
        Self {
            backend: Backend::in_memory(),
        }
    }

    /// Makes a queue on a store and a seam of the caller's, as tests do.
    pub fn on_store(store: Arc<dyn Store>, seam: Arc<dyn Seam>) -> Self {
        Self {
            backend: Backend::new(store, seam),
        }
    }

    /// Enqueues one job; options are added to what this returns, then it is awaited.
    ///
    /// Takes the payload struct, `queue.enqueue(SendWelcomeJob { user_id: 42 })`, and does the same
    /// as `send_welcome::enqueue(&queue, 42)`.
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue<'_, J> {
        Enqueue::new(self, job)
    }

    /// Enqueues up to 10,000 jobs at once: all are stored or none, and each is answered in
    /// order. The inner result differs from `Ok` only for a conflict of an idempotency key.
    ///
    /// ```
    /// use queue_runtime::{Queue, job};
    ///
    /// #[job(dedupe = "user_id")]
    /// async fn send_newsletter(user_id: i64) {
    ///     println!("news for user {user_id}");
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = Queue::open("memory:").await?;
    /// let jobs = [7, 8, 7].map(|user_id| SendNewsletterJob { user_id });
    ///
    /// let answers = queue.enqueue_all(jobs).await?;
    /// let enqueued = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// assert!(enqueued[2].duplicate && enqueued[2].id == enqueued[0].id);
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue_all<J: Job>(&self, jobs: impl IntoIterator<Item = J>) -> EnqueueAll<'_, J> {
        EnqueueAll::new(&self.backend, jobs.into_iter().collect())
    }

    /// Returns a job in any state; `None` if there is none of this id, or not any more.
    ///
    /// # Errors
    /// The store's.
    pub async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        self.store().job(id).await
    }

    /// Returns a job's attempts, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        self.store().attempts(id).await
    }

    /// Calls a job off and returns its state: `Cancelled` if it was waiting, `Processing` if it
    /// runs and its worker will be told at the next heartbeat.
    ///
    /// # Errors
    /// [`JobActionError::NotFound`] or [`JobActionError::AlreadyFinal`]; nothing was changed.
    pub async fn cancel(&self, id: JobId) -> Result<JobState, JobActionError> {
        match self.store().cancel(id).await? {
            Cancelling::Cancelled => Ok(JobState::Cancelled),
            Cancelling::Requested => Ok(JobState::Processing),
            Cancelling::AlreadyFinal(state) => Err(JobActionError::AlreadyFinal { id, state }),
            Cancelling::NotFound => Err(JobActionError::NotFound(id)),
        }
    }

    /// Returns the newest dead letters, the last one first, at most `limit`. Pages beyond that,
    /// and other final states, are listed by `store().finished(..)`.
    ///
    /// # Errors
    /// The store's.
    pub async fn dead_letters(&self, limit: usize) -> Result<Vec<JobRecord>, StoreError> {
        self.store()
            .finished(JobState::DeadLetter, None, limit)
            .await
    }

    /// Counts the jobs in each state, in one snapshot.
    ///
    /// # Errors
    /// The store's.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        self.store().counts().await
    }

    /// Begins an immediate transaction in the queue's SQLite file, for enqueueing with `in_tx`
    /// beside the application's own writes. Holds the file's one write lock until it ends. The
    /// transaction is one of sqlx 0.9.
    ///
    /// ```
    /// use queue_runtime::{Queue, job};
    ///
    /// #[job]
    /// async fn send_welcome(user_id: i64) {
    ///     println!("welcome, user {user_id}");
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let url = format!("sqlite://{}/app.db", folder.path().display());
    /// let queue = Queue::open(url).await?;
    /// let mut tx = queue.begin().await?;
    /// sqlx::query("create table users (id integer primary key)").execute(&mut *tx).await?;
    /// sqlx::query("insert into users (id) values (42)").execute(&mut *tx).await?;
    /// send_welcome::enqueue(&queue, 42).in_tx(&mut tx).await?;
    /// tx.commit().await?;
    /// assert_eq!(queue.counts().await?.queued, 1);
    /// # queue.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] of kind `Unsupported` on another store, `Unavailable` while the file is
    /// locked.
    #[cfg(feature = "sqlite")]
    pub async fn begin(&self) -> Result<sqlx::Transaction<'static, sqlx::Sqlite>, StoreError> {
        match self.backend.sqlite() {
            Some(store) => store.begin().await,
            None => Err(StoreError::new(
                crate::error::StoreErrorKind::Unsupported,
                "begin",
                "only a queue on SQLite has SQLite transactions",
            )),
        }
    }

    /// Returns the in-process cache that refresh jobs of this queue publish to.
    pub fn cache(&self) -> &Cache {
        self.backend.cache()
    }

    /// Listens to what happens to jobs in this process, from now on.
    pub fn events(&self) -> broadcast::Receiver<JobEvent> {
        self.backend.events().listen()
    }

    /// Returns the store, for operators' tools and tests.
    pub fn store(&self) -> &Arc<dyn Store> {
        self.backend.store()
    }

    /// Finishes what was accepted and closes the connections; later calls fail as closed.
    ///
    /// On Postgres a connection that is still in use is waited for no longer than a call may take, 40 s
    /// with the timeouts as they are.
    pub async fn close(&self) {
        self.store().close().await;
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }
}

impl<'q> EnqueueTarget<'q> for &'q Queue {
    fn backend(self) -> &'q Backend {
        &self.backend
    }
}
