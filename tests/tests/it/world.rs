//! A queue in memory whose clock is moved by hand, and a worker that is driven until something
//! has happened.

use std::sync::Arc;
use std::time::Duration;

use queue_runtime::job::{JobEvent, JobRecord};
use queue_runtime::seam::Seam;
use queue_runtime::store::Store;
use queue_runtime::store::memory::MemoryStore;
use queue_runtime::{JobId, JobState, Queue, WorkerBuilder, WorkerError};
use queue_testkit::clock::TestSeam;
use queue_testkit::conformance::{Fixture as _, PostgresFixture, is_skipped};
use queue_testkit::faulty::Faulty;
use tokio::sync::broadcast;

pub(crate) struct World {
    pub(crate) seam: TestSeam,
    pub(crate) queue: Queue,
    pub(crate) faults: Faulty,
    events: broadcast::Receiver<JobEvent>,
}

/// How often other tasks get a turn before the clock moves, so that everything that can happen
/// without time passing has happened.
const TURNS: usize = 200;

/// A drive that moves the clock further than this has lost its way.
const DRIVE_MAX: Duration = Duration::from_hours(3);

impl World {
    pub(crate) fn new() -> Self {
        let seam = TestSeam::new(7);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(seam.shared()));
        let faults = Faulty::new(store);
        let queue = Queue::on_store(Arc::new(faults.clone()), seam.shared());
        let events = queue.events();
        Self {
            seam,
            queue,
            faults,
            events,
        }
    }

    pub(crate) async fn job(&self, id: JobId) -> JobRecord {
        self.queue
            .job(id)
            .await
            .expect("the store answers")
            .expect("the job exists")
    }

    /// Every event since the last call.
    pub(crate) fn events(&mut self) -> Vec<JobEvent> {
        std::iter::from_fn(|| self.events.try_recv().ok()).collect()
    }

    /// Runs a worker until all of the jobs are final, then shuts it down.
    pub(crate) async fn run(&self, worker: WorkerBuilder, jobs: &[JobId]) {
        let all_final = async || {
            for id in jobs {
                if !self.job(*id).await.state.is_final() {
                    return false;
                }
            }
            true
        };
        self.run_until(worker, all_final)
            .await
            .expect("the worker ends well");
    }

    /// Runs a worker until `done` says so, then shuts it down and returns how it ended. Whenever
    /// nothing can happen without time passing, the clock moves to the next moment at which
    /// something sleeps until.
    pub(crate) async fn run_until(
        &self,
        worker: WorkerBuilder,
        done: impl AsyncFn() -> bool,
    ) -> Result<(), WorkerError> {
        let stop = tokio::sync::Notify::new();
        let run = worker.run_until(stop.notified());
        tokio::pin!(run);
        let started = self.seam.elapsed();
        let mut told = false;
        loop {
            if !told && done().await {
                stop.notify_one();
                told = true;
            }
            let quiet = async {
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                ended = &mut run => return ended,
                () = quiet => {
                    let driven = self.seam.elapsed() - started;
                    assert!(driven < DRIVE_MAX, "nothing happened in {driven:?}");
                    self.seam.advance_to_next_sleeper();
                }
            }
        }
    }
}

/// A file of its own for a queue on the real clock.
pub(crate) struct File {
    folder: tempfile::TempDir,
}

impl File {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite://{}", self.folder.path().join("jobs.db").display())
    }

    pub(crate) fn exists(&self) -> bool {
        self.folder.path().join("jobs.db").exists()
    }

    pub(crate) async fn open(&self) -> Queue {
        Queue::open(self.url())
            .await
            .expect("a new file can be opened")
    }
}

/// A schema of its own on the Postgres server that the tests are given.
pub(crate) struct Server {
    fixture: PostgresFixture,
}

impl Server {
    /// Chooses a schema; `None` if the test is to be skipped because there is no server.
    pub(crate) fn new() -> Option<Self> {
        let fixture = PostgresFixture::new();
        (!is_skipped(&fixture)).then_some(Self { fixture })
    }

    pub(crate) fn schema(&self) -> &str {
        self.fixture.schema()
    }

    /// The address of the queue, its tables not made.
    pub(crate) fn url(&self) -> String {
        self.fixture.url().expect("there is a server")
    }

    pub(crate) async fn open(&self) -> Queue {
        let opening = Queue::open(self.url()).migrate();
        opening.await.expect("the server makes a schema")
    }

    /// The application's own connections.
    pub(crate) async fn pool(&self) -> sqlx::PgPool {
        let server = std::env::var(PostgresFixture::VARIABLE).expect("there is a server");
        sqlx::PgPool::connect(&server)
            .await
            .expect("the server takes more connections")
    }

    /// Removes everything.
    pub(crate) async fn end(self) {
        let discarded = self.fixture.discard().await;
        discarded.expect("the schema is ours to drop");
    }
}

/// Waits until so many jobs of this process have become final.
pub(crate) fn final_events(queue: &Queue, jobs: usize) -> impl Future<Output = ()> + use<> {
    let mut events = queue.events();
    async move {
        let mut left = jobs;
        while left > 0 {
            let state = match events.recv().await.expect("the queue lives on") {
                JobEvent::Settled { state, .. } | JobEvent::Rescued { state, .. } => state,
                _ => JobState::Queued,
            };
            left -= usize::from(state.is_final());
        }
    }
}
