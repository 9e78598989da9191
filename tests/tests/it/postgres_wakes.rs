//! Wake-ups between processes on Postgres, when the connection that hears them is cut.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use queue_runtime::seam::{Seam, SystemSeam};
use queue_runtime::store::Store;
use queue_runtime::store::postgres::PostgresStore;
use queue_runtime::time::Timestamp;
use queue_runtime::{JobId, Queue, Worker, job};
use tokio::sync::{Notify, oneshot};
use tracing::Level;

use crate::forwarder::Forwarder;
use crate::logs::Log;
use crate::postgres_server::soon;
use crate::world::{Server, final_events};

#[job]
async fn pings() {}

/// How often a listening store tries its connection, and how long the answer may take.
const PROBE_EVERY: Duration = Duration::from_secs(15);
const PROBE_MAX: Duration = Duration::from_secs(4);

/// The system's seam, save that the pauses of the probe last until a test ends them.
#[derive(Debug, Default)]
struct ByHand {
    system: SystemSeam,
    pauses: Mutex<Vec<(Duration, oneshot::Sender<()>)>>,
    added: Notify,
}

impl ByHand {
    /// Waits until a pause of this length has begun.
    async fn begun(&self, span: Duration) {
        while self.place(span).is_none() {
            self.added.notified().await;
        }
    }

    /// Ends a pause of this length.
    fn end(&self, span: Duration) {
        let place = self.place(span).expect("such a pause has begun");
        let (_, end) = self.pauses().swap_remove(place);
        end.send(()).expect("somebody waits");
    }

    fn place(&self, span: Duration) -> Option<usize> {
        let mut pauses = self.pauses();
        pauses.retain(|(_, end)| !end.is_closed());
        pauses.iter().position(|(length, _)| *length == span)
    }

    fn pauses(&self) -> MutexGuard<'_, Vec<(Duration, oneshot::Sender<()>)>> {
        self.pauses.lock().expect("no panic while noting")
    }
}

impl Seam for ByHand {
    fn now(&self) -> Timestamp {
        self.system.now()
    }

    fn elapsed(&self) -> Duration {
        self.system.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        if ![PROBE_EVERY, PROBE_MAX].contains(&span) {
            return self.system.sleep(span);
        }
        let (end, ended) = oneshot::channel();
        self.pauses().push((span, end));
        self.added.notify_one();
        Box::pin(async {
            ended.await.expect("a test ends it, or nobody waits");
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        self.system.spawn(task)
    }

    fn spawn_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        self.system.spawn_apart(name, task)
    }

    fn random(&self) -> u64 {
        self.system.random()
    }

    fn job_id(&self) -> JobId {
        self.system.job_id()
    }
}

/// Waits until a store hears, after so many losses.
async fn hears(store: &PostgresStore, losses: u64) {
    let mut listening = store.listening();
    let works = listening.wait_for(|state| state.is_hearing && state.losses == losses);
    soon("hearing", works).await.expect("the store lives");
}

/// O-067: a connection that is cut without a word is missed by the probe, and replaced.
#[tokio::test]
async fn o_067_a_listener_whose_packets_are_swallowed_is_replaced_by_the_next_probe() {
    let Some(server) = Server::new() else { return };
    let other = server.open().await;
    let forwarder = Forwarder::start(&server.url()).await;
    let hand = Arc::new(ByHand::default());
    let options = forwarder.options(server.schema());
    let store = PostgresStore::open(options.seam(hand.clone())).await;
    let store = store.expect("opened");
    let mut wakes = store.wakes();
    soon("the first hint", wakes.wait()).await;
    hears(&store, 0).await;
    let (log, _guard) = Log::start();

    let mut cut = forwarder.swallow_listeners();
    assert_eq!(cut.len(), 1);
    pings::enqueue(&other).await.expect("enqueued");
    soon("a probe's turn", hand.begun(PROBE_EVERY)).await;
    hand.end(PROBE_EVERY);
    soon("a probe", hand.begun(PROBE_MAX)).await;
    assert!(wakes.wait().now_or_never().is_none(), "nothing arrives");
    hand.end(PROBE_MAX);

    soon("a hint for what was missed", wakes.wait()).await;
    hears(&store, 1).await;
    pings::enqueue(&other).await.expect("enqueued");
    soon("a hint", wakes.wait()).await;
    let gone = soon("the end of the dead connection", cut[0].changed()).await;
    gone.expect_err("it says nothing but that it has ended");
    let told: Vec<_> = log
        .lines()
        .into_iter()
        .filter(|line| line.fields.contains_key("losses"))
        .map(|line| (line.level, line.fields["losses"].clone()))
        .collect();
    let losses = || "1".to_owned();
    assert_eq!(told, [(Level::WARN, losses()), (Level::INFO, losses())]);
    store.close().await;
    other.close().await;
    server.end().await;
}

#[tokio::test]
async fn while_nothing_is_heard_jobs_are_found_by_polling() {
    let Some(server) = Server::new() else { return };
    let other = server.open().await;
    let forwarder = Forwarder::start(&server.url()).await;
    forwarder.refuse_listeners();
    let options = forwarder.options(server.schema());
    let store = Arc::new(PostgresStore::open(options).await.expect("opened"));
    let listening = store.listening();
    let queue = Queue::on_store(store, Arc::new(SystemSeam::new()));
    let worker = Worker::builder(&queue)
        .job::<PingsJob>()
        .poll(Duration::from_millis(50));

    let pings = async {
        for _ in 0..5 {
            let done = final_events(&queue, 1);
            pings::enqueue(&other).await.expect("enqueued");
            soon("the end of the job", done).await;
        }
    };
    worker.run_until(pings).await.expect("ends well");

    assert!(!listening.borrow().is_hearing);
    queue.close().await;
    other.close().await;
    server.end().await;
}
