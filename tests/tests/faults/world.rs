//! The store of one scenario: handles to it, and what a scenario does again and again.
//!
//! A scenario takes a [`World`], whose clock is the store's own, or a [`Subject`], whose clock it
//! moves by hand. [`on!`] makes a test of each for one store.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{join_all, select_all, try_join};
use queue_runtime::job::{Claimed, JobEvent, JobRecord, JobType, QueueName, WorkerId};
use queue_runtime::seam::{Seam, SystemSeam};
use queue_runtime::store::memory::MemoryStore;
use queue_runtime::store::sqlite::{SqliteOptions, Synchronous};
use queue_runtime::store::{ClaimRequest, Store, Suspects};
use queue_runtime::{JobId, JobState, OpenError, Queue, WorkerError};
use queue_testkit::Verb;
use queue_testkit::conformance::{Fixture as _, PostgresFixture, is_skipped};
use queue_testkit::faulty::Faulty;
use tokio::sync::Barrier;

pub(crate) use queue_testkit::conformance::Subject;

/// A fresh store with its own clock.
pub(crate) struct World {
    place: Place,
    opened: Mutex<Vec<Queue>>,
}

/// Where the jobs are.
enum Place {
    Memory(Arc<dyn Store>),
    Sqlite(tempfile::TempDir),
    Postgres(PostgresFixture),
}

/// Makes a test of each scenario for one store, in a module named after it.
macro_rules! on {
    ($store:ident: $(real { $($real:ident)* })? $(by_hand { $($hand:ident)* })?) => {
        mod $store {
            $($(
                #[test]
                fn $real() {
                    crate::world::run(crate::world::World::$store(), async |world| {
                        super::$real(world).await;
                    });
                }
            )*)?
            $($(
                #[test]
                fn $hand() {
                    let fixture = crate::world::fixtures::$store();
                    queue_testkit::conformance::run(fixture, async |s: &crate::world::Subject| {
                        super::$hand(s).await;
                    });
                }
            )*)?
        }
    };
}

/// Stores whose clock is moved by hand.
pub(crate) mod fixtures {
    use queue_testkit::conformance::{MemoryFixture, PostgresFixture, SqliteFixture};

    pub(crate) fn memory() -> MemoryFixture {
        MemoryFixture
    }

    pub(crate) fn sqlite() -> SqliteFixture {
        SqliteFixture::new()
    }

    pub(crate) fn postgres() -> PostgresFixture {
        PostgresFixture::new()
    }
}

/// Runs a scenario on enough threads for races to happen; `None` is skipped.
pub(crate) fn run(world: Option<World>, scenario: impl AsyncFnOnce(&World)) {
    let Some(world) = world else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("the system gives a test its threads");
    runtime.block_on(async {
        scenario(&world).await;
        world.end().await;
    });
}

impl World {
    fn on(place: Place) -> Option<Self> {
        let opened = Mutex::default();
        Some(Self { place, opened })
    }

    pub(crate) fn memory() -> Option<Self> {
        Self::on(Place::Memory(Arc::new(MemoryStore::new(seam()))))
    }

    pub(crate) fn sqlite() -> Option<Self> {
        Self::on(Place::Sqlite(
            tempfile::tempdir().expect("a temporary folder"),
        ))
    }

    /// `None` if there is no server, which is said.
    pub(crate) fn postgres() -> Option<Self> {
        let fixture = PostgresFixture::new();
        match is_skipped(&fixture) {
            true => None,
            false => Self::on(Place::Postgres(fixture)),
        }
    }

    /// The store's address, for other processes.
    ///
    /// # Panics
    /// On a store that lives in its process.
    pub(crate) fn url(&self) -> String {
        match &self.place {
            Place::Memory(_) => panic!("memory has no address"),
            Place::Sqlite(folder) => format!("sqlite://{}/jobs.db", folder.path().display()),
            Place::Postgres(fixture) => fixture.url().expect("there is a server"),
        }
    }

    /// The schema of its own on the server, if there is one.
    pub(crate) fn schema(&self) -> Option<&str> {
        match &self.place {
            Place::Postgres(fixture) => Some(fixture.schema()),
            _ => None,
        }
    }

    /// Opens a handle with connections of its own, as another process would; in memory all
    /// handles share the one store.
    pub(crate) async fn open(&self) -> Queue {
        let queue = match &self.place {
            Place::Memory(store) => Queue::on_store(Arc::clone(store), seam()),
            _ => open_at(&self.url())
                .await
                .expect("a new store can be opened"),
        };
        self.opened
            .lock()
            .expect("nobody panics while opening")
            .push(queue.clone());
        queue
    }

    /// Opens a handle of its own whose calls can be made to fail or to wait.
    pub(crate) async fn open_faulty(&self) -> (Queue, Faulty) {
        let faults = Faulty::new(Arc::clone(self.open().await.store()));
        (Queue::on_store(Arc::new(faults.clone()), seam()), faults)
    }

    /// Connections of the application's own to the server, if there is one.
    pub(crate) async fn pool(&self) -> Option<sqlx::PgPool> {
        let Place::Postgres(_) = &self.place else {
            return None;
        };
        let server = std::env::var(PostgresFixture::VARIABLE).expect("there is a server");
        let pool = sqlx::PgPool::connect(&server).await;
        Some(pool.expect("the server takes more connections"))
    }

    /// Waits until so many statements wait for somebody's transaction. A file has one lock and
    /// shows nobody who waits for it.
    pub(crate) async fn locks_are_waited_for(&self, statements: i64) {
        let (Some(pool), Place::Postgres(fixture)) = (self.pool().await, &self.place) else {
            return;
        };
        eventually(async || {
            let waiting = sqlx::query_scalar(
                "select count(*) from pg_stat_activity \
                 where wait_event_type = 'Lock' and strpos(query, $1) > 0",
            );
            let waiting = waiting.bind(fixture.schema()).fetch_one(&pool).await;
            let waiting: i64 = waiting.expect("the server answers");
            waiting >= statements
        })
        .await;
        pool.close().await;
    }

    /// Closes what was opened and removes what was stored.
    async fn end(self) {
        for queue in self.opened.into_inner().expect("nobody panics") {
            queue.close().await;
        }
        if let Place::Postgres(fixture) = self.place {
            let discarded = fixture.discard().await;
            discarded.expect("the schema is ours to drop");
        }
    }
}

/// Opens the store of an address, its tables made if they are not there.
///
/// A file is not waited for until it is on the disk: what is tried here ends processes and never
/// the machine, and a disk that others keep busy would let leases run out.
pub(crate) async fn open_at(url: &str) -> Result<Queue, OpenError> {
    if url.starts_with("sqlite:") {
        let options = SqliteOptions::new(url)?.synchronous(Synchronous::Normal);
        return Queue::open_with(options).await;
    }
    Queue::open(url).migrate().await
}

pub(crate) fn seam() -> Arc<dyn Seam> {
    Arc::new(SystemSeam::new())
}

/// Claims due jobs as a worker of this name would, and leaves it at that.
pub(crate) async fn claim_as(
    queue: &Queue,
    worker: &str,
    job_type: &str,
    lease: Duration,
) -> Vec<Claimed> {
    let request = ClaimRequest {
        worker: WorkerId::new(worker).expect("a name"),
        queues: vec![QueueName::default_queue()],
        job_types: vec![(JobType::new(job_type).expect("a name"), 1)],
        limit: 1_000,
        lease,
        suspects: Suspects::NONE,
    };
    let claimed = queue.store().claim(&request).await;
    claimed.expect("the store answers")
}

/// Looks a job up that must exist.
pub(crate) async fn job(queue: &Queue, id: JobId) -> JobRecord {
    let job = queue.job(id).await.expect("the store answers");
    job.unwrap_or_else(|| panic!("job {id} is lost"))
}

/// Waits until so many jobs have become final, by what these handles tell.
pub(crate) fn finals(queues: &[&Queue], jobs: usize) -> impl Future<Output = ()> + use<> {
    let mut events: Vec<_> = queues.iter().map(|queue| queue.events()).collect();
    async move {
        let mut left = jobs;
        while left > 0 {
            let (event, ..) = select_all(events.iter_mut().map(|e| Box::pin(e.recv()))).await;
            let state = match event.expect("the queue lives on, and the listener keeps up") {
                JobEvent::Settled { state, .. } | JobEvent::Rescued { state, .. } => state,
                _ => JobState::Queued,
            };
            left -= usize::from(state.is_final());
        }
    }
}

/// Waits between two looks at a store that nothing tells of. Looks without a pause keep a
/// processor busy on both sides, and what they wait for may find none for seconds.
pub(crate) async fn between_looks() {
    seam().sleep(Duration::from_millis(5)).await;
}

/// Asks again and again until the answer is yes. Every question goes to a store.
pub(crate) async fn eventually(holds: impl AsyncFn() -> bool) {
    while !holds().await {
        between_looks().await;
    }
}

/// Runs a worker beside a scenario that stops it; a worker that fails ends both.
pub(crate) async fn beside<T>(
    worker: impl Future<Output = Result<T, WorkerError>>,
    scenario: impl Future<Output = ()>,
) {
    let scenario = async {
        scenario.await;
        Ok(())
    };
    let ended = try_join(worker, scenario).await;
    ended.expect("the worker ends well");
}

/// Waits until a worker has asked for work so many times more.
pub(crate) async fn asks_again(faults: &Faulty, times: usize) {
    let asked = || faults.calls(Verb::Claim) + faults.calls(Verb::Exchange);
    let enough = asked() + times;
    while asked() < enough {
        let (claims, exchanges) = (faults.calls(Verb::Claim), faults.calls(Verb::Exchange));
        tokio::select! {
            () = faults.calls_reach(Verb::Claim, claims + 1) => {}
            () = faults.calls_reach(Verb::Exchange, exchanges + 1) => {}
        }
    }
}

/// Runs callers on threads of their own, all let go at one moment; returns their answers in order.
pub(crate) async fn together<T: Send + 'static, F>(
    count: usize,
    caller: impl Fn(usize) -> F,
) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(count));
    let callers = (0..count).map(|index| {
        let (start, call) = (Arc::clone(&start), caller(index));
        tokio::spawn(async move {
            start.wait().await;
            call.await
        })
    });
    let ended = join_all(callers).await.into_iter();
    ended
        .map(|answer| answer.expect("no caller panics"))
        .collect()
}
