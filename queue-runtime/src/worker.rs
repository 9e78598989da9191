//! Runs jobs: the one module that knows every stage. [`street`] is the map.
//!
//! One loop claims jobs, starts an attempt for each on a task of its own, and hands what they
//! came to back to the store; settlements and the next claim travel together. Beside it run the
//! heartbeat (a thread of its own), the rescue of other workers' lost jobs, and retention. A
//! store that is down is waited for; a fault that waiting cannot cure ends the worker.

mod builder;
mod hooks;
mod attempt;
mod street;
mod exchange;
mod heartbeat;
mod chores;
mod unread;
mod shutdown;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{broadcast, mpsc, watch};

pub use builder::WorkerBuilder;
pub use hooks::{DeadLetter, Hooks};
pub use shutdown::shutdown_signal;

use self::builder::Config;
use self::hooks::HookList;
use self::street::Street;
use crate::backend::Backend;
use crate::error::{StoreError, WorkerError};
use crate::handler::DataMap;
use crate::job::{Claimed, JobEvent, QueueName, WorkerId};
use crate::pipeline::declare::Registry;
use crate::pipeline::keepalive::Leases;
use crate::queue::Queue;
use crate::rules::error_text::panic_message;
use crate::store::{ClaimRequest, Suspects};
use crate::time::Timestamp;

/// A worker that is ready to run.
///
/// ```standalone_crate
/// use std::time::Duration;
///
/// use queue_runtime::{Queue, Worker, job};
///
/// #[job]
/// async fn send_welcome(user_id: i64) {
///     println!("welcome, user {user_id}");
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = Queue::open("memory:").await?;
/// send_welcome::enqueue(&queue, 42).await?;
/// let worker = Worker::builder(&queue)
///     .concurrency(20)
///     .grace(Duration::from_secs(25))
///     .build()?;
/// // A lasting worker calls `run()`, which ends at SIGINT or SIGTERM.
/// worker.run_until_empty().await?;
/// assert_eq!(queue.counts().await?.done, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    ready: watch::Sender<bool>,
}

/// What every part of a running worker reads.
#[derive(Debug)]
struct Shared {
    backend: Arc<Backend>,
    id: WorkerId,
    queues: Vec<QueueName>,
    registry: Registry,
    data: Arc<DataMap>,
    hooks: HookList,
    config: Config,
    leases: Arc<Leases>,
    /// Whether the store has failed this worker since the last rescue.
    outage: AtomicBool,
}

impl Shared {
    /// Says whether no job that this worker could run waits, and nothing runs. Waiting is looked
    /// at before and after, since a job may leave one state for the other between two looks.
    async fn is_empty(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        let store = self.backend.store();
        Ok(store.next_due(request).await?.is_none()
            && store.counts().await?.processing == 0
            && store.next_due(request).await?.is_none())
    }

    fn report(&self, event: JobEvent) {
        self.hooks.on_event(&event);
        self.backend.events().report(event);
    }
}

impl Worker {
    /// Starts configuring a worker for a queue.
    pub fn builder(queue: &Queue) -> WorkerBuilder {
        WorkerBuilder::new(queue)
    }

    fn new(
        queue: Queue,
        id: WorkerId,
        queues: Vec<QueueName>,
        registry: Registry,
        data: DataMap,
        hooks: HookList,
        config: Config,
    ) -> Self {
        let shared = Shared {
            backend: Arc::clone(queue.backend()),
            id,
            queues,
            registry,
            data: Arc::new(data),
            hooks,
            config,
            leases: Arc::default(),
            outage: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
            ready: watch::Sender::new(false),
        }
    }

    /// Returns the worker's id: its name and a boot id.
    pub fn id(&self) -> &WorkerId {
        &self.shared.id
    }

    /// Returns a flag for a readiness probe: true once the worker has reached its store, false
    /// while the store does not answer, from the beginning of a shutdown, and after the end.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Runs jobs until the process is told to end (SIGINT or SIGTERM); see
    /// [`run_until`](Self::run_until).
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub async fn run(self) -> Result<(), WorkerError> {
        self.run_until(shutdown_signal()).await
    }

    /// Runs jobs until none that it could run waits (whether due or not) and nothing runs, then
    /// stops; for scripts, examples and tests. Other producers and workers may add jobs at any
    /// time, so this promises an empty moment and no more.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub async fn run_until_empty(self) -> Result<(), WorkerError> {
        let shared = Arc::clone(&self.shared);
        let mut events = shared.backend.events().listen();
        let anything = ClaimRequest {
            worker: shared.id.clone(),
            queues: shared.queues.clone(),
            job_types: shared.registry.claimable(&shared.data),
            limit: 1,
            lease: shared.config.times.lease,
            suspects: Suspects::NONE,
        };
        let empty = async move {
            while !shared.is_empty(&anything).await.unwrap_or(false) {
                let look = shared.backend.seam().sleep(shared.config.poll);
                tokio::select! {
                    // Whatever ends here may be the last; a missed event is made up for by a look.
                    () = ended(&mut events) => {}
                    () = look => {}
                }
            }
        };
        self.run_until(empty).await
    }

    /// Runs jobs until `shutdown` is ready, then stops within the grace budget: claims nothing
    /// more, lets running attempts finish, stops and hands back what is left (which costs no
    /// attempt), records every result.
    ///
    /// A store that cannot be reached is waited for, also at the start. Dropping the future stops
    /// the handlers, and their jobs come back when their lease has run out, as after a crash.
    ///
    /// # Errors
    /// [`WorkerError`] if a loop cannot go on (let `main` return it, so that the process ends
    /// with a non-zero code), or if attempts that block their thread did not stop in time.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let Self { shared, ready } = self;
        let (failed, failure) = mpsc::unbounded_channel();
        // Both are stopped when they are dropped, however this function ends.
        let _heartbeat = heartbeat::start(&shared, failed.clone());
        let _chores = chores::start(&shared, failed);
        let street = Street::new(shared, ready, failure);
        let run = AssertUnwindSafe(street.run(shutdown)).catch_unwind().await;
        run.unwrap_or_else(|panic| {
            Err(WorkerError::Panicked {
                name: "street",
                message: panic_message(panic),
            })
        })
    }
}

impl Shared {
    /// The store's time as far as this process can tell: its time of the claim, and what has
    /// passed since on the monotonic clock.
    fn store_time(&self, claimed: &Claimed, now: Duration) -> Timestamp {
        let asked = self.leases.claimed_at(claimed.lease()).unwrap_or(now);
        claimed.claimed_at.saturating_add(now.saturating_sub(asked))
    }

    /// A span shortened by up to a fifth, so that many workers do not act at once.
    fn jittered(&self, span: Duration) -> Duration {
        span - span.mul_f64(0.2 * self.fraction())
    }

    /// A random share between nothing and one.
    fn fraction(&self) -> f64 {
        (self.backend.seam().random() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Waits for the end of an attempt, or until events were missed.
async fn ended(events: &mut broadcast::Receiver<JobEvent>) {
    loop {
        match events.recv().await {
            Ok(JobEvent::Settled { .. } | JobEvent::Rescued { .. }) => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}
