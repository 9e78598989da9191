//! A store in a temporary file, on a clock that is moved by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tempfile::TempDir;

use crate::job::{
    Change, Claimed, Due, JobId, JobType, NewJob, OutcomeKind, QueueName, Settlement, WorkerId,
};
use crate::seam::{Seam, SystemSeam, next_ordinal, uuid_v7};
use crate::store::ClaimRequest;
use crate::store::Suspects;
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::time::Timestamp;

/// A clock moved by hand; everything else is the system's.
#[derive(Debug)]
pub(in crate::store::sqlite) struct Hand {
    now: AtomicI64,
    newest: AtomicU64,
    system: SystemSeam,
}

impl Hand {
    pub(in crate::store::sqlite) fn new() -> Arc<Self> {
        Arc::new(Self {
            now: AtomicI64::new(1_796_000_000_000),
            newest: AtomicU64::new(0),
            system: SystemSeam::new(),
        })
    }

    pub(in crate::store::sqlite) fn advance(&self, span: Duration) {
        let ms = i64::try_from(span.as_millis()).expect("a short span");
        self.now.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Seam for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        self.now().since(Timestamp::EPOCH)
    }

    /// Sleeps for no time at all, but lets everybody else go first.
    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::task::yield_now())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        self.system.spawn(task)
    }

    fn spawn_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        self.system.spawn_apart(name, task)
    }

    fn random(&self) -> u64 {
        7
    }

    fn job_id(&self) -> JobId {
        uuid_v7(next_ordinal(&self.newest, self.now()), 7)
    }
}

/// A store, its clock and the folder that goes with it.
pub(in crate::store::sqlite) struct World {
    pub(in crate::store::sqlite) hand: Arc<Hand>,
    pub(in crate::store::sqlite) store: Arc<SqliteStore>,
    pub(in crate::store::sqlite) dir: TempDir,
}

impl World {
    pub(in crate::store::sqlite) async fn new() -> Self {
        let hand = Hand::new();
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(options(&dir, &hand)).await.unwrap();
        Self {
            hand,
            store: Arc::new(store),
            dir,
        }
    }

    /// The options that the store was opened with.
    pub(in crate::store::sqlite) fn options(&self) -> SqliteOptions {
        options(&self.dir, &self.hand)
    }

    /// A connection beside the store, such as the application's.
    pub(in crate::store::sqlite) async fn connection(&self) -> sqlx::SqliteConnection {
        use sqlx::ConnectOptions;
        self.options().connect_options().connect().await.unwrap()
    }

    /// A job of the type `mail` in the queue `default`, due now.
    pub(in crate::store::sqlite) fn job(&self) -> NewJob {
        job(&*self.hand, "mail")
    }

    /// Claims as `w1`.
    pub(in crate::store::sqlite) async fn claim(&self, limit: usize) -> Vec<Claimed> {
        use crate::store::Store;
        self.store.claim(&request(limit)).await.unwrap()
    }
}

fn options(dir: &TempDir, hand: &Arc<Hand>) -> SqliteOptions {
    let path = dir.path().join("jobs.db");
    SqliteOptions::new(path.to_str().unwrap())
        .unwrap()
        .clock(Arc::clone(hand) as Arc<dyn Seam>)
        .seam(Arc::clone(hand) as Arc<dyn Seam>)
}

pub(in crate::store::sqlite) fn job(seam: &dyn Seam, job_type: &str) -> NewJob {
    NewJob {
        id: seam.job_id(),
        job_type: JobType::new(job_type).unwrap(),
        queue: QueueName::default_queue(),
        payload: r#"{"to":"ada@example.org"}"#.to_owned(),
        payload_schema: 1,
        priority: 0,
        max_attempts: 5,
        due: Due::Now,
        deadline: None,
        dedupe: None,
        idempotency: None,
        cache: None,
        trace_context: None,
    }
}

pub(in crate::store::sqlite) fn request(limit: usize) -> ClaimRequest {
    ClaimRequest {
        worker: WorkerId::new("w1").unwrap(),
        queues: vec![QueueName::default_queue()],
        job_types: vec![(JobType::new("mail").unwrap(), 1)],
        limit,
        lease: Duration::from_mins(1),
        suspects: Suspects::NONE,
    }
}

/// The settlement of a run that went well.
pub(in crate::store::sqlite) fn done(claimed: &Claimed) -> Settlement {
    Settlement {
        id: claimed.id,
        token: claimed.token,
        change: Change::Done,
        outcome: OutcomeKind::Success,
        error: None,
        attempts: claimed.attempt,
        crashes: 0,
        snoozes: 0,
        only_if_expired: false,
    }
}
