//! What one case is run on: a fresh store, its clock, and short words for the verbs.
//!
//! The words here expect an answer where the store's own verbs may fail: a case that does not
//! test errors stops at the first one. Every call is recorded, and a case that fails prints them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::BoxError;
use queue_runtime::job::{Attempt, Claimed, JobId, JobRecord, Lease, NewJob, Settled, Settlement};
use queue_runtime::seam::Seam;
use queue_runtime::store::{
    Admin as _, Cancelling, ClaimRequest, Edit, Extended, Heartbeat, Inserted, Pruned, Replaying,
    Retention, Store, Suspects, Versions as _,
};
use queue_runtime::time::Timestamp;
use tokio::sync::Mutex;

use super::jobs::{JOB_TYPE, LEASE, QUEUE, SCHEMA, job_type, queue, worker};
use super::picture::Picture;
use crate::clock::TestSeam;
use crate::recorder::Recorder;

/// Makes the store that a case is run on.
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// Opens a store whose clock is `seam`, with its tables created.
    ///
    /// The first call gives an empty store that nobody else uses. Where jobs outlive the process,
    /// later calls open the same jobs again; only the `durable` family asks for that.
    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError>;

    /// Says why no store can be opened here, such as that no server is named. A case is then
    /// skipped with that line, and fails where the environment variable `CI` is set.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Removes what was stored, once the case has ended.
    async fn discard(&self) -> Result<(), BoxError> {
        Ok(())
    }
}

#[async_trait]
impl Fixture for Box<dyn Fixture> {
    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
        (**self).open(seam).await
    }
}

/// A fresh store with a clock moved by hand.
pub struct Subject {
    fixture: Box<dyn Fixture>,
    seam: TestSeam,
    store: RwLock<Arc<Recorder>>,
    heartbeat: Mutex<Option<Box<dyn Heartbeat>>>,
}

impl Subject {
    /// Opens a fresh store; `seed` fixes the ids.
    ///
    /// # Panics
    /// If the fixture cannot open its store.
    pub async fn open(fixture: impl Fixture, seed: u64) -> Self {
        let seam = TestSeam::new(seed);
        let store = fixture
            .open(seam.shared())
            .await
            .expect("the fixture opens its store");
        let store = RwLock::new(Arc::new(Recorder::new(store, seam.shared())));
        let (fixture, heartbeat) = (Box::new(fixture), Mutex::new(None));
        Self {
            fixture,
            seam,
            store,
            heartbeat,
        }
    }

    /// Closes the store and opens it again, as a restarted process does.
    ///
    /// # Panics
    /// If the fixture cannot open its store again.
    pub async fn reopen(&self) {
        self.heartbeat.lock().await.take();
        self.recorder().close().await;
        let opened = self
            .fixture
            .open(self.seam.shared())
            .await
            .expect("the store opens again");
        let continued = Arc::new(self.recorder().continued_on(opened));
        *self.store.write().unwrap_or_else(PoisonError::into_inner) = continued;
    }

    /// Closes the store and removes what it has stored.
    ///
    /// # Panics
    /// If the fixture cannot do that.
    pub async fn discard(&self) {
        self.heartbeat.lock().await.take();
        self.recorder().close().await;
        let discarded = self.fixture.discard().await;
        discarded.expect("the fixture removes what was stored");
    }

    /// Returns the store; its calls are recorded.
    pub fn store(&self) -> Arc<dyn Store> {
        self.recorder()
    }

    fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.store.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the clock that the store runs on.
    pub fn seam(&self) -> &TestSeam {
        &self.seam
    }

    /// Returns what was asked and answered so far.
    pub fn history(&self) -> String {
        self.recorder().history()
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.seam.now()
    }

    /// Moves the clock.
    pub fn advance(&self, span: Duration) {
        self.seam.advance(span);
    }

    /// Returns a job to insert: plain, due at once, with an id of its own.
    pub fn job(&self) -> NewJob {
        super::jobs::plain(self.seam.job_id())
    }

    /// Inserts jobs.
    pub async fn insert(&self, jobs: &[NewJob]) -> Vec<Inserted> {
        let replies = self.recorder().insert(jobs).await.expect("insert answers");
        assert_eq!(replies.len(), jobs.len(), "insert answers every item");
        replies
    }

    /// Inserts one job, whatever the answer.
    pub async fn offer(&self, job: &NewJob) -> Inserted {
        self.insert(std::slice::from_ref(job)).await.remove(0)
    }

    /// Inserts one job that must be new.
    pub async fn add(&self, job: &NewJob) -> JobId {
        let id = job.id;
        assert_eq!(self.offer(job).await, Inserted::New { id });
        id
    }

    /// Returns a request for every job that [`job`](Self::job) makes.
    pub fn request(&self) -> ClaimRequest {
        ClaimRequest {
            worker: worker("conformance@1"),
            queues: vec![queue(QUEUE)],
            job_types: vec![(job_type(JOB_TYPE), SCHEMA)],
            limit: 100,
            lease: LEASE,
            suspects: Suspects::NONE,
        }
    }

    /// Claims what a request asks for.
    pub async fn claim(&self, request: &ClaimRequest) -> Vec<Claimed> {
        let claimed = self.recorder().claim(request).await.expect("claim answers");
        assert!(claimed.len() <= request.limit, "claim keeps its limit");
        claimed
    }

    /// Claims everything due of the plain kind, as one worker.
    pub async fn claim_all(&self) -> Vec<Claimed> {
        self.claim(&self.request()).await
    }

    /// Claims one job; there must be one.
    pub async fn take(&self) -> Claimed {
        let mut claimed = self
            .claim(&ClaimRequest {
                limit: 1,
                ..self.request()
            })
            .await;
        claimed.pop().expect("a job is due")
    }

    /// Inserts one job and claims it.
    pub async fn running(&self, job: &NewJob) -> Claimed {
        self.add(job).await;
        let claimed = self.take().await;
        assert_eq!(claimed.id, job.id, "no other job was due");
        claimed
    }

    /// Settles attempts.
    pub async fn settle(&self, settlements: &[Settlement]) -> Vec<Settled> {
        let replies = self
            .recorder()
            .settle(settlements)
            .await
            .expect("settle answers");
        assert_eq!(
            replies.len(),
            settlements.len(),
            "settle answers every item"
        );
        replies
    }

    /// Settles one attempt, which must be applied as it is written.
    pub async fn apply(&self, settlement: Settlement) {
        let state = settlement.change.state();
        let reply = self.settle(&[settlement]).await;
        assert_eq!(reply, [Settled::Applied(state)]);
    }

    /// Inserts one job, claims it and settles it.
    pub async fn settled(
        &self,
        job: &NewJob,
        with: impl FnOnce(&Claimed) -> Settlement,
    ) -> Claimed {
        let claimed = self.running(job).await;
        self.apply(with(&claimed)).await;
        claimed
    }

    /// Settles and claims in one call.
    pub async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> (Vec<Settled>, Vec<Claimed>) {
        self.recorder()
            .exchange(settlements, request)
            .await
            .expect("exchange answers")
    }

    /// Renews leases over one heartbeat that stays open.
    pub async fn extend(&self, leases: &[Lease], lease: Duration) -> Vec<Extended> {
        let mut heartbeat = self.heartbeat.lock().await;
        if heartbeat.is_none() {
            *heartbeat = Some(
                self.recorder()
                    .heartbeat()
                    .await
                    .expect("a heartbeat opens"),
            );
        }
        let heartbeat = heartbeat.as_mut().expect("it was opened above");
        let replies = heartbeat
            .extend(leases, lease)
            .await
            .expect("extend answers");
        assert_eq!(replies.len(), leases.len(), "extend answers every item");
        replies
    }

    /// Lists the jobs whose lease has run out.
    pub async fn expired(&self, limit: usize) -> Vec<JobRecord> {
        self.recorder()
            .expired(limit)
            .await
            .expect("expired answers")
    }

    /// Returns how long until the next job of the plain kind is due.
    pub async fn next_due(&self) -> Option<Duration> {
        self.recorder()
            .next_due(&self.request())
            .await
            .expect("next_due answers")
    }

    /// Calls a job off.
    pub async fn cancel(&self, id: JobId) -> Cancelling {
        self.recorder().cancel(id).await.expect("cancel answers")
    }

    /// Replays a job.
    pub async fn replay(&self, id: JobId) -> Replaying {
        self.recorder()
            .replay(id, false)
            .await
            .expect("replay answers")
    }

    /// Replays a job with another payload.
    pub async fn replay_with(&self, id: JobId, edit: &Edit) -> Replaying {
        let replaying = self.recorder().replay_with(id, false, edit).await;
        replaying.expect("replay_with answers")
    }

    /// Prunes with one retention for every final state.
    pub async fn prune(&self, retention: Duration, limit: usize) -> Pruned {
        let retention = Retention {
            done: retention,
            cancelled: retention,
            dead_letter: retention,
        };
        self.recorder()
            .prune(&retention, limit)
            .await
            .expect("prune answers")
    }

    /// Returns a job that must exist.
    pub async fn record(&self, id: JobId) -> JobRecord {
        let record = self.recorder().inner().job(id).await.expect("job answers");
        record.unwrap_or_else(|| panic!("job {id} exists"))
    }

    /// Returns a job's attempts.
    pub async fn attempts(&self, id: JobId) -> Vec<Attempt> {
        self.recorder()
            .inner()
            .attempts(id)
            .await
            .expect("attempts answers")
    }

    /// Returns the newest version announced for a cache key.
    pub async fn newest_version(&self, cache_key: &str) -> Option<u64> {
        self.recorder()
            .newest_version(cache_key)
            .await
            .expect("newest_version answers")
    }

    /// Returns everything that is visible of every job ever offered to this store.
    ///
    /// # Panics
    /// If what is visible breaks a rule that holds at every moment.
    pub async fn picture(&self) -> Picture {
        let recorder = self.recorder();
        let picture = Picture::of(recorder.inner().as_ref(), &recorder.inserted_ids()).await;
        let broken = picture.broken_rules();
        assert!(broken.is_empty(), "the store breaks {}", broken.join(";\n"));
        picture
    }

    /// Says that the store now shows exactly what is expected, for every job ever offered.
    ///
    /// # Panics
    /// If it does not; names every field that differs.
    pub async fn shows(&self, expected: &Picture) {
        let differences = expected.differences(&self.picture().await);
        assert!(
            differences.is_empty(),
            "not what was expected:\n{}",
            differences.join("\n")
        );
    }
}
