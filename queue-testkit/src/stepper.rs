//! Runs a program's own jobs step by step: one job, everything that is due, or whole lives.
//!
//! A [`TestQueue`] is a queue in memory whose time stands still. Its workers are real ones, with
//! the handlers of the program; only the store and the clock are the test's. A worker runs until
//! nothing is running and nothing is due, so a test awaits it instead of sleeping, and says when
//! time passes.
//!
//! ```
//! use std::time::Duration;
//!
//! use queue_runtime::{JobError, job};
//! use queue_testkit::{TestQueue, assert_enqueued};
//!
//! #[job]
//! async fn send_welcome(user_id: i64) -> Result<(), JobError> {
//!     match user_id {
//!         0 => Err(JobError::permanent("no such user")),
//!         _ => Ok(()),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let test = TestQueue::new();
//! send_welcome::enqueue(test.queue(), 42).delay(Duration::from_secs(60)).await?;
//! assert_enqueued!(test, SendWelcomeJob { user_id: 42 });
//!
//! assert!(test.drain(|worker| worker).await?.is_empty(), "it is not due yet");
//! test.advance(Duration::from_secs(60));
//! let runs = test.drain(|worker| worker).await?;
//! assert_eq!(runs.len(), 1);
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use queue_runtime::error::StoreError;
use queue_runtime::job::{JobEvent, JobId, JobRecord, JobResult, JobState, JobType, WorkerId};
use queue_runtime::seam::Seam as _;
use queue_runtime::store::memory::MemoryStore;
use queue_runtime::{Job, Queue, Worker, WorkerBuilder, WorkerError};
use tokio::sync::broadcast::error::RecvError;

use crate::clock::TestSeam;
use crate::faulty::Faulty;
use crate::recorder::Recorder;

/// A queue in memory with a clock moved by hand, and workers that stop when there is nothing to
/// do.
#[derive(Debug)]
pub struct TestQueue {
    queue: Queue,
    seam: TestSeam,
    store: Faulty,
    recorder: Arc<Recorder>,
}

/// One attempt that a worker settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The job.
    pub id: JobId,
    /// Its type.
    pub job_type: JobType,
    /// The number of the attempt.
    pub attempt: u32,
    /// What the attempt came to.
    pub result: JobResult,
    /// Where the job stands now.
    pub state: JobState,
    /// The error text.
    pub error: Option<String>,
}

impl TestQueue {
    /// Makes an empty queue.
    pub fn new() -> Self {
        Self::from_seed(1)
    }

    /// Makes an empty queue whose ids and randomness repeat from `seed`.
    pub fn from_seed(seed: u64) -> Self {
        let seam = TestSeam::new(seed);
        let store = Faulty::new(Arc::new(MemoryStore::new(seam.shared())));
        let recorder = Arc::new(Recorder::new(Arc::new(store.clone()), seam.shared()));
        let queue = Queue::on_store(recorder.clone(), seam.shared());
        Self {
            queue,
            seam,
            store,
            recorder,
        }
    }

    /// Returns the queue, to enqueue on and to ask about jobs.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the clock.
    pub fn seam(&self) -> &TestSeam {
        &self.seam
    }

    /// Returns the store's faults: what to fail, lose or hold.
    pub fn faults(&self) -> &Faulty {
        &self.store
    }

    /// Returns the calls of the store and their answers so far, to print when a test fails.
    pub fn history(&self) -> String {
        self.recorder.history()
    }

    /// Lets time pass; nothing runs until a worker does.
    pub fn advance(&self, span: Duration) {
        self.seam.advance(span);
    }

    /// Runs the one job that is first in order, and returns what came of it; `None` if none is
    /// due. `configure` gives the worker its data and options.
    ///
    /// # Errors
    /// If the worker cannot be built or cannot go on.
    pub async fn run_one(
        &self,
        configure: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) -> Result<Option<Run>, WorkerError> {
        self.store.allow_claims(Some(1));
        let runs = self.drain(configure).await;
        self.store.allow_claims(None);
        Ok(runs?.pop())
    }

    /// Runs everything that is due, also what that enqueues, until nothing runs and nothing is
    /// due; returns the runs in the order in which they ended. Retries that wait for their time
    /// stay. Jobs whose lease ran out are rescued first.
    ///
    /// A handler that waits for the test's clock keeps this waiting: move the clock meanwhile.
    ///
    /// # Errors
    /// If the worker cannot be built or cannot go on.
    pub async fn drain(
        &self,
        configure: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) -> Result<Vec<Run>, WorkerError> {
        let mut runs = self.queue.events();
        let worker = configure(Worker::builder(&self.queue)).build()?;
        let id = worker.id().clone();
        let mut ended = Vec::new();
        {
            // Read while the worker runs: afterwards a long drain would have outrun its events.
            let told = async {
                while let Ok(event) = runs.recv().await {
                    ended.extend(Run::of(event));
                }
            };
            tokio::select! {
                biased;
                () = told => unreachable!("the queue outlives its worker, and nobody falls behind"),
                done = worker.run_until(self.nothing_to_do(id)) => done?,
            }
        }
        while let Ok(event) = runs.try_recv() {
            ended.extend(Run::of(event));
        }
        Ok(ended)
    }

    /// Runs everything that is due, then moves the clock to when the next job is due, and so on,
    /// until no job waits or `limit` attempts have ended.
    ///
    /// # Errors
    /// If the worker cannot be built or cannot go on.
    pub async fn run_lives(
        &self,
        limit: usize,
        mut configure: impl FnMut(WorkerBuilder) -> WorkerBuilder,
    ) -> Result<Vec<Run>, WorkerError> {
        let mut runs = self.drain(&mut configure).await?;
        while runs.len() < limit
            && let Some(span) = self.next_due().await.map_err(failed)?
        {
            self.advance(span);
            let more = self.drain(&mut configure).await?;
            if more.is_empty() {
                break; // Due, but not for this worker.
            }
            runs.extend(more);
        }
        Ok(runs)
    }

    /// Returns how long until a job that the last worker could run is due; `None` if none waits.
    ///
    /// # Errors
    /// The store's.
    pub async fn next_due(&self) -> Result<Option<Duration>, StoreError> {
        let request = self.store.last_request().await;
        self.store.inner().next_due(&request).await
    }

    /// Returns every job that was ever enqueued and is still known, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn jobs(&self) -> Result<Vec<JobRecord>, StoreError> {
        let mut jobs = Vec::new();
        // Ids rise with time; one that was offered twice is one job.
        for id in BTreeSet::from_iter(self.recorder.inserted_ids()) {
            jobs.extend(self.store.inner().job(id).await?);
        }
        Ok(jobs)
    }

    /// Returns the payloads of the waiting jobs of one kind, oldest first.
    ///
    /// # Panics
    /// If one cannot be read as that kind of job: the names of two kinds collide.
    pub async fn enqueued<J: Job>(&self) -> Vec<J> {
        let jobs = self
            .jobs()
            .await
            .expect("the store behind the faults answers");
        jobs.iter()
            .filter(|job| job.state == JobState::Queued && *job.job_type.as_str() == *J::DEF.name())
            .map(|job| {
                let payload = J::from_stored(&job.payload, job.payload_schema);
                payload.unwrap_or_else(|error| panic!("job {}: {error}", job.id))
            })
            .collect()
    }

    /// Describes the waiting jobs, one a line, for the message of an assertion.
    pub async fn describe_enqueued(&self) -> String {
        let jobs = self
            .jobs()
            .await
            .expect("the store behind the faults answers");
        let waiting = jobs.iter().filter(|job| job.state == JobState::Queued);
        waiting
            .map(|job| format!("  {} {} due {}\n", job.job_type, job.payload, job.run_at))
            .collect()
    }

    /// Ends when this worker runs nothing, nothing is due, and no lease waits for its rescue.
    ///
    /// A job that another worker holds under a lease is none of its business.
    async fn nothing_to_do(&self, worker: WorkerId) {
        let mut events = self.queue.events();
        self.store.last_request().await;
        while self.something_to_do(&worker).await.unwrap_or(true) {
            match events.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn something_to_do(&self, worker: &WorkerId) -> Result<bool, StoreError> {
        if self.store.may_claim() && self.next_due().await? == Some(Duration::ZERO) {
            return Ok(true);
        }
        let store = self.store.inner();
        if store.counts().await?.processing == 0 {
            return Ok(false);
        }
        let now = self.seam.now();
        let jobs = self.jobs().await?;
        Ok(jobs.iter().any(|job| {
            let expired = job.locked_until.is_some_and(|end| end <= now);
            expired || job.locked_by.as_ref() == Some(worker)
        }))
    }
}

impl Default for TestQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl Run {
    fn of(event: JobEvent) -> Option<Self> {
        match event {
            JobEvent::Settled {
                id,
                job_type,
                attempt,
                result,
                state,
                error,
                ..
            } => Some(Self {
                id,
                job_type,
                attempt,
                result,
                state,
                error,
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            job_type,
            attempt,
            result,
            state,
            ..
        } = self;
        write!(
            f,
            "{job_type} {id}, attempt {attempt}: {result}, now {state}"
        )
    }
}

fn failed(source: StoreError) -> WorkerError {
    let name = "stepper";
    WorkerError::Store { name, source }
}
