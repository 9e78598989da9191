//! A store that writes down what it was asked and what it answered.
//!
//! [`Recorder`] hands every call through unchanged. Its history is what a failing test prints
//! first: the calls in the order in which they were answered, at which time, with what result.

use std::fmt::{self, Debug};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{
    Attempt, Claimed, JobId, JobRecord, JobState, JobType, Lease, NewJob, QueueName, Settled,
    Settlement, Verified,
};
use queue_runtime::seam::Seam;
use queue_runtime::store::{
    Admin, Cancelling, ClaimRequest, Counts, Edit, Extended, Heartbeat, Inserted, Pruned,
    Replaying, Retention, Store, Unread, Versions, Waiting, WakeListener,
};
use queue_runtime::time::Timestamp;

use crate::verb::Verb;

/// One answered call of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it was answered, on the clock that the recorder was given.
    pub at: Timestamp,
    /// The verb.
    pub verb: Verb,
    /// What was asked.
    pub asked: String,
    /// What was answered; the error's text if it failed.
    pub answered: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            verb,
            asked,
            answered,
        } = self;
        write!(f, "{at} {verb}({asked})\n    -> {answered}")
    }
}

/// Hands calls through to a store and keeps the newest of them.
pub struct Recorder {
    store: Arc<dyn Store>,
    history: Arc<History>,
}

struct History {
    seam: Arc<dyn Seam>,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    kept: Vec<Call>,
    dropped: usize,
    ids: Vec<JobId>,
}

impl Recorder {
    /// How many calls are kept: enough for any single test, little enough to read.
    pub const CALLS_MAX: usize = 1_000;

    /// Starts recording the calls of `store`, dated by the clock of `seam`.
    pub fn new(store: Arc<dyn Store>, seam: Arc<dyn Seam>) -> Self {
        let calls = Mutex::default();
        let history = Arc::new(History { seam, calls });
        Self { store, history }
    }

    /// Returns the store behind; calls of it are not recorded.
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Records the same history on another store, such as the same one opened again.
    #[must_use]
    pub fn continued_on(&self, store: Arc<dyn Store>) -> Self {
        let history = Arc::clone(&self.history);
        Self { store, history }
    }

    /// Returns the recorded calls, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.history.calls().kept.clone()
    }

    /// Returns every id that was ever passed to `insert`, in the order of the calls.
    pub fn inserted_ids(&self) -> Vec<JobId> {
        self.history.calls().ids.clone()
    }

    /// Returns the recorded calls as text, one call in two lines.
    pub fn history(&self) -> String {
        let calls = self.history.calls();
        let mut text = format!(
            "{} calls, {} older ones dropped\n",
            calls.kept.len(),
            calls.dropped
        );
        for call in &calls.kept {
            text.push_str(&format!("{call}\n"));
        }
        text
    }
}

impl History {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep<T: Debug>(
        &self,
        verb: Verb,
        asked: String,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = call.await;
        let answered = match &answer {
            Ok(reply) => format!("{reply:?}"),
            Err(error) => format!("error: {error}"),
        };
        let at = self.seam.now();
        let mut calls = self.calls();
        if calls.kept.len() == Recorder::CALLS_MAX {
            calls.kept.remove(0);
            calls.dropped += 1;
        }
        calls.kept.push(Call {
            at,
            verb,
            asked,
            answered,
        });
        answer
    }
}

impl Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({:?})", self.store)
    }
}

#[async_trait]
impl Store for Recorder {
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        self.history
            .calls()
            .ids
            .extend(jobs.iter().map(|job| job.id));
        let call = self.store.insert(jobs);
        self.history
            .keep(Verb::Insert, format!("{jobs:?}"), call)
            .await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let call = self.store.claim(request);
        self.history
            .keep(Verb::Claim, format!("{request:?}"), call)
            .await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        let call = self.store.settle(settlements);
        self.history
            .keep(Verb::Settle, format!("{settlements:?}"), call)
            .await
    }

    async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        let call = self.store.exchange(settlements, request);
        let asked = format!("{settlements:?}, {request:?}");
        self.history.keep(Verb::Exchange, asked, call).await
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        let heartbeat = self.store.heartbeat().await?;
        let history = Arc::clone(&self.history);
        Ok(Box::new(RecordedHeartbeat { heartbeat, history }))
    }

    async fn expired(&self, limit: usize) -> Result<Vec<JobRecord>, StoreError> {
        let call = self.store.expired(limit);
        self.history
            .keep(Verb::Expired, format!("{limit}"), call)
            .await
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        let call = self.store.next_due(request);
        self.history
            .keep(Verb::NextDue, format!("{request:?}"), call)
            .await
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.history
            .keep(Verb::Migrate, String::new(), self.store.migrate())
            .await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.history
            .keep(Verb::Now, String::new(), self.store.now())
            .await
    }

    fn wakes(&self) -> WakeListener {
        self.store.wakes()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

struct RecordedHeartbeat {
    heartbeat: Box<dyn Heartbeat>,
    history: Arc<History>,
}

#[async_trait]
impl Heartbeat for RecordedHeartbeat {
    async fn extend(
        &mut self,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        let call = self.heartbeat.extend(leases, lease);
        self.history
            .keep(Verb::Extend, format!("{leases:?}, {lease:?}"), call)
            .await
    }
}

#[async_trait]
impl Admin for Recorder {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        self.history
            .keep(Verb::Job, format!("{id}"), self.store.job(id))
            .await
    }

    async fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let call = self.store.finished(state, before, limit);
        self.history
            .keep(
                Verb::Finished,
                format!("{state}, {before:?}, {limit}"),
                call,
            )
            .await
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        self.history
            .keep(Verb::Attempts, format!("{id}"), self.store.attempts(id))
            .await
    }

    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError> {
        self.history
            .keep(Verb::Cancel, format!("{id}"), self.store.cancel(id))
            .await
    }

    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError> {
        let call = self.store.replay(id, as_new);
        self.history
            .keep(Verb::Replay, format!("{id}, as_new: {as_new}"), call)
            .await
    }

    async fn replay_with(
        &self,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        let call = self.store.replay_with(id, as_new, edit);
        let asked = format!("{id}, as_new: {as_new}, {edit:?}");
        self.history.keep(Verb::ReplayWith, asked, call).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.history
            .keep(Verb::Counts, String::new(), self.store.counts())
            .await
    }

    async fn unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        let call = self.store.unread(queues, known);
        self.history
            .keep(Verb::Unread, format!("{queues:?}, {known:?}"), call)
            .await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        self.history
            .keep(Verb::Waiting, String::new(), self.store.waiting())
            .await
    }

    async fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let call = self
            .store
            .waiting_sample(job_type, queue, schema, after, count);
        let asked = format!("{job_type}, {queue}, {schema}, {after:?}, {count}");
        self.history.keep(Verb::WaitingSample, asked, call).await
    }

    async fn verify(&self, limit: usize) -> Result<Verified, StoreError> {
        let call = self.store.verify(limit);
        self.history
            .keep(Verb::Verify, format!("{limit}"), call)
            .await
    }

    async fn prune(&self, retention: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        let call = self.store.prune(retention, limit);
        self.history
            .keep(Verb::Prune, format!("{retention:?}, {limit}"), call)
            .await
    }
}

#[async_trait]
impl Versions for Recorder {
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError> {
        let call = self.store.newest_version(cache_key);
        self.history
            .keep(Verb::NewestVersion, format!("{cache_key:?}"), call)
            .await
    }
}
