//! A handler that blocks its runtime's thread: with the heartbeat on that runtime the lease is
//! lost, with a heartbeat of its own it is kept.
//!
//! Seen from outside, over another handle on the same jobs and with the real clock: either the
//! lease is renewed again and again, or it runs out and a rescue takes the job.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::BoxError;
use queue_runtime::job::{JobRecord, Settled};
use queue_runtime::seam::{Seam, SystemSeam};
use queue_runtime::store::Store;
use queue_runtime::{Data, JobContext, JobId, JobState, Queue, Worker, job};
use queue_testkit::conformance::Fixture;
use queue_testkit::conformance::jobs::rescue_of;
use queue_testkit::known_bad::OneRuntime;

/// Long enough for a busy machine to renew it in time, ten times over.
const LEASE: Duration = Duration::from_secs(2);

/// Says that the lease is lost with the fault and kept without it.
pub(crate) fn loses_its_lease_on_one_runtime(fixture: impl Fixture, durable: bool) {
    let fixture: Arc<dyn Fixture> = match durable {
        true => Arc::new(fixture),
        false => Arc::new(OneHandle::on(fixture)),
    };
    let system = || -> Arc<dyn Seam> { Arc::new(SystemSeam::new()) };

    let healthy = fate(&fixture, system());
    assert_eq!(healthy, (Fate::Kept, 1), "on a thread of its own");

    let planted = fate(&fixture, Arc::new(OneRuntime::new(system())));
    assert_eq!(planted, (Fate::Lost, 2), "beside the handler");

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system gives a test its runtime");
    let discarded = runtime.block_on(fixture.discard());
    discarded.expect("the fixture removes what was stored");
}

/// What became of the lease.
#[derive(Debug, PartialEq)]
enum Fate {
    Kept,
    Lost,
}

/// Hands out one store for all who open it, where jobs do not outlive their process.
struct OneHandle<F> {
    fixture: F,
    opened: tokio::sync::OnceCell<Arc<dyn Store>>,
}

impl<F: Fixture> OneHandle<F> {
    fn on(fixture: F) -> Self {
        let opened = tokio::sync::OnceCell::new();
        Self { fixture, opened }
    }
}

#[async_trait]
impl<F: Fixture> Fixture for OneHandle<F> {
    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
        let opening = self.opened.get_or_try_init(|| self.fixture.open(seam));
        opening.await.cloned()
    }
}

#[job(timeout = "none", retries = 9)]
async fn blocks(ctx: JobContext, begun: Data<SyncSender<JobId>>, go: Data<Gate>) {
    // Only the first run is listened to.
    let _ = begun.try_send(ctx.job_id());
    // No await in between: the runtime's only thread is blocked, until the test lets go for good.
    let gate = go.0.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = gate.recv();
}

struct Gate(Mutex<Receiver<()>>);

/// Runs a job that blocks its worker's thread, and returns what became of its lease and how many
/// attempts it took.
fn fate(fixture: &Arc<dyn Fixture>, seam: Arc<dyn Seam>) -> (Fate, u32) {
    let (begun, has_begun) = sync_channel(1);
    let (let_go, go) = sync_channel::<()>(1);
    let its_fixture = Arc::clone(fixture);
    let worker = thread::spawn(move || {
        runtime().block_on(async {
            let store = its_fixture.open(Arc::clone(&seam)).await;
            let store = store.expect("the fixture opens its store");
            let queue = Queue::on_store(store, seam);
            blocks::enqueue(&queue).await.expect("enqueued");
            let worker = Worker::builder(&queue).job::<BlocksJob>();
            let worker = worker.lease(LEASE).heartbeat(LEASE / 10);
            let worker = worker.data(begun).data(Gate(Mutex::new(go)));
            worker.run_until_empty().await.expect("ends well");
        });
    });
    let id = has_begun.recv().expect("the handler runs");
    let watcher = runtime();
    let store = watcher.block_on(fixture.open(Arc::new(SystemSeam::new())));
    let store = store.expect("the fixture opens its store again");

    let fate = watcher.block_on(watch(store.as_ref(), id));
    drop(let_go);
    worker.join().expect("the worker ends well");

    let job = watcher.block_on(shown(store.as_ref(), id));
    assert_eq!(job.state, JobState::Done);
    (fate, job.attempts)
}

/// Waits until the lease has been renewed often enough, or until a rescue takes the job.
async fn watch(store: &dyn Store, id: JobId) -> Fate {
    const RENEWALS: usize = 5;
    let mut ends = BTreeSet::new();
    while ends.len() <= RENEWALS {
        for expired in store.expired(1).await.expect("expired answers") {
            let rescued = store.settle(&[rescue_of(&expired)]).await;
            let rescued = rescued.expect("settle answers");
            if rescued == [Settled::Applied(JobState::Queued)] {
                return Fate::Lost;
            }
        }
        ends.extend(shown(store, id).await.locked_until);
    }
    Fate::Kept
}

async fn shown(store: &dyn Store, id: JobId) -> JobRecord {
    let found = store.job(id).await.expect("job answers");
    found.expect("the job exists")
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    runtime.expect("the system gives a test its runtime")
}
