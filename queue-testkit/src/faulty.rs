//! A store that fails, loses its replies or stops on demand.
//!
//! Between a caller and its store three things can go wrong, and a test asks for each by verb:
//! the call fails before anything was done ([`fail_next`](Faulty::fail_next)); the work is done
//! and the reply is lost ([`lose_reply_next`](Faulty::lose_reply_next)); the call stands still
//! before or after the work until it is let go ([`hold`](Faulty::hold),
//! [`hold_reply`](Faulty::hold_reply)). A fourth is a lack:
//! [`allow_claims`](Faulty::allow_claims) hands out only so many jobs. A caller cannot tell the first two apart, and both answer
//! the same error. Nothing here sleeps: a test waits for a named call to arrive at its gate.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use queue_runtime::error::{StoreError, StoreErrorKind};
use queue_runtime::job::{
    Attempt, Claimed, JobId, JobRecord, JobState, JobType, Lease, NewJob, QueueName, Settled,
    Settlement, Verified,
};
use queue_runtime::store::{
    Admin, Cancelling, ClaimRequest, Counts, Edit, Extended, Heartbeat, Inserted, Pruned,
    Replaying, Retention, Store, Unread, Versions, Waiting, WakeListener,
};
use queue_runtime::time::Timestamp;
use tokio::sync::watch;

use crate::verb::Verb;

/// Wraps a store; clones share their faults.
#[derive(Clone)]
pub struct Faulty {
    store: Arc<dyn Store>,
    faults: Faults,
    claims: Arc<watch::Sender<Claims>>,
}

/// What was claimed, and how much more may be.
#[derive(Clone, Debug, Default)]
struct Claims {
    allowed: Option<usize>,
    last_request: Option<ClaimRequest>,
}

#[derive(Clone)]
struct Faults(Arc<watch::Sender<BTreeMap<Verb, Fault>>>);

/// What is in the way of one verb.
#[derive(Clone, Debug, Default)]
struct Fault {
    fails: usize,
    failing_as: Option<StoreErrorKind>,
    lost_replies: usize,
    holds_calls: bool,
    holds_replies: bool,
    held: usize,
    calls: usize,
}

impl Faulty {
    /// Wraps a store without any fault yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let faults = Faults(Arc::new(watch::Sender::new(BTreeMap::new())));
        let claims = Arc::default();
        Self {
            store,
            faults,
            claims,
        }
    }

    /// Returns the store behind, which never fails.
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Makes the next `count` calls of a verb fail as unavailable before anything is done.
    pub fn fail_next(&self, verb: Verb, count: usize) {
        self.fail_next_as(verb, count, StoreErrorKind::Unavailable);
    }

    /// Makes the next `count` calls of a verb fail in a given way before anything is done.
    pub fn fail_next_as(&self, verb: Verb, count: usize, kind: StoreErrorKind) {
        self.faults.change(verb, |fault| {
            fault.fails = count;
            fault.failing_as = Some(kind);
        });
    }

    /// Lets the next call of a verb do its work and then loses the reply: its caller sees the
    /// same error as if nothing had been done. Asking twice loses two replies.
    pub fn lose_reply_next(&self, verb: Verb) {
        self.faults.change(verb, |fault| fault.lost_replies += 1);
    }

    /// Stops every call of a verb before its work, until [`release`](Self::release).
    pub fn hold(&self, verb: Verb) {
        self.faults.change(verb, |fault| fault.holds_calls = true);
    }

    /// Stops every call of a verb after its work and before its reply, until
    /// [`release`](Self::release).
    pub fn hold_reply(&self, verb: Verb) {
        self.faults.change(verb, |fault| fault.holds_replies = true);
    }

    /// Lets the held calls of a verb go on, and no longer stops new ones.
    pub fn release(&self, verb: Verb) {
        self.faults.change(verb, |fault| {
            fault.holds_calls = false;
            fault.holds_replies = false;
        });
    }

    /// Hands out at most `count` more jobs, over all claims; `None` lifts the bound.
    pub fn allow_claims(&self, count: Option<usize>) {
        self.claims.send_modify(|claims| claims.allowed = count);
    }

    /// Says whether anything more may be claimed.
    pub fn may_claim(&self) -> bool {
        self.claims.borrow().allowed != Some(0)
    }

    /// Returns what was asked for by the newest claim, as it was asked; waits for the first one.
    pub async fn last_request(&self) -> ClaimRequest {
        let mut claims = self.claims.subscribe();
        let asked = claims
            .wait_for(|claims| claims.last_request.is_some())
            .await;
        let last = asked.ok().and_then(|claims| claims.last_request.clone());
        last.expect("`self` keeps the sender alive, so the wait ends with a request")
    }

    /// Cuts a request to what may still be claimed, and takes that much from it.
    fn cut(&self, request: &ClaimRequest) -> ClaimRequest {
        let mut request = request.clone();
        self.claims.send_modify(|claims| {
            claims.last_request = Some(request.clone());
            if let Some(allowed) = &mut claims.allowed {
                request.limit = request.limit.min(*allowed);
                *allowed -= request.limit;
            }
        });
        request
    }

    /// Gives back what a cut request did not use.
    fn give_back(&self, request: &ClaimRequest, claimed: usize) {
        self.claims.send_modify(|claims| {
            if let Some(allowed) = &mut claims.allowed {
                *allowed += request.limit.saturating_sub(claimed);
            }
        });
    }

    /// Waits until at least `count` calls of a verb stand at a gate.
    pub async fn held_reach(&self, verb: Verb, count: usize) {
        self.faults.reach(verb, |fault| fault.held >= count).await;
    }

    /// Waits until at least `count` calls of a verb were made since the start, failed ones too.
    pub async fn calls_reach(&self, verb: Verb, count: usize) {
        self.faults.reach(verb, |fault| fault.calls >= count).await;
    }

    /// Returns how many calls of a verb were made since the start, failed ones too.
    pub fn calls(&self, verb: Verb) -> usize {
        self.faults
            .0
            .borrow()
            .get(&verb)
            .map_or(0, |fault| fault.calls)
    }
}

impl Faults {
    fn change<T>(&self, verb: Verb, change: impl FnOnce(&mut Fault) -> T) -> T {
        let mut answer = None;
        let change = |all: &mut BTreeMap<Verb, Fault>| {
            answer = Some(change(all.entry(verb).or_default()));
        };
        self.0.send_modify(change);
        answer.expect("send_modify always calls its closure")
    }

    async fn reach(&self, verb: Verb, reached: impl Fn(&Fault) -> bool) {
        let mut faults = self.0.subscribe();
        let none = Fault::default();
        let reached = |all: &BTreeMap<Verb, Fault>| reached(all.get(&verb).unwrap_or(&none));
        // `self` keeps the sender alive, so the wait ends only when the condition holds.
        let _ = faults.wait_for(reached).await;
    }

    /// Lets one call pass with whatever is in its way.
    async fn pass<T>(
        &self,
        verb: Verb,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let fails = self.change(verb, |fault| {
            fault.calls += 1;
            let fails = fault.fails > 0;
            fault.fails = fault.fails.saturating_sub(1);
            fails.then(|| fault.failing_as.unwrap_or(StoreErrorKind::Unavailable))
        });
        self.stand(verb, |fault| fault.holds_calls).await;
        if let Some(kind) = fails {
            return Err(StoreError::new(kind, verb.as_str(), "failed on demand"));
        }
        let answer = work.await;
        self.stand(verb, |fault| fault.holds_replies).await;
        let lost = self.change(verb, |fault| {
            let lost = fault.lost_replies > 0;
            fault.lost_replies = fault.lost_replies.saturating_sub(1);
            lost
        });
        if lost {
            let kind = StoreErrorKind::Unavailable;
            return Err(StoreError::new(kind, verb.as_str(), "failed on demand"));
        }
        answer
    }

    /// Stands at a gate while it is closed; a caller that goes away while standing is not counted.
    async fn stand(&self, verb: Verb, closed: fn(&Fault) -> bool) {
        if !self.change(verb, |fault| closed(fault)) {
            return;
        }
        struct Standing<'a>(&'a Faults, Verb);
        impl Drop for Standing<'_> {
            fn drop(&mut self) {
                self.0.change(self.1, |fault| fault.held -= 1);
            }
        }
        self.change(verb, |fault| fault.held += 1);
        let _standing = Standing(self, verb);
        self.reach(verb, |fault| !closed(fault)).await;
    }
}

impl Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({:?}, {:?})", self.store, *self.faults.0.borrow())
    }
}

#[async_trait]
impl Store for Faulty {
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        self.faults
            .pass(Verb::Insert, self.store.insert(jobs))
            .await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let request = self.cut(request);
        let call = self.store.claim(&request);
        let answer = self.faults.pass(Verb::Claim, call).await;
        self.give_back(&request, answer.as_ref().map_or(0, Vec::len));
        answer
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        self.faults
            .pass(Verb::Settle, self.store.settle(settlements))
            .await
    }

    async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        let request = self.cut(request);
        let call = self.store.exchange(settlements, &request);
        let answer = self.faults.pass(Verb::Exchange, call).await;
        let claimed = answer.as_ref().map_or(0, |(_, claimed)| claimed.len());
        self.give_back(&request, claimed);
        answer
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        let heartbeat = self
            .faults
            .pass(Verb::Heartbeat, self.store.heartbeat())
            .await?;
        let faults = self.faults.clone();
        Ok(Box::new(FaultyHeartbeat { heartbeat, faults }))
    }

    async fn expired(&self, limit: usize) -> Result<Vec<JobRecord>, StoreError> {
        self.faults
            .pass(Verb::Expired, self.store.expired(limit))
            .await
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        self.faults
            .pass(Verb::NextDue, self.store.next_due(request))
            .await
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.faults.pass(Verb::Migrate, self.store.migrate()).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.faults.pass(Verb::Now, self.store.now()).await
    }

    fn wakes(&self) -> WakeListener {
        self.store.wakes()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

struct FaultyHeartbeat {
    heartbeat: Box<dyn Heartbeat>,
    faults: Faults,
}

#[async_trait]
impl Heartbeat for FaultyHeartbeat {
    async fn extend(
        &mut self,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        self.faults
            .pass(Verb::Extend, self.heartbeat.extend(leases, lease))
            .await
    }
}

#[async_trait]
impl Admin for Faulty {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        self.faults.pass(Verb::Job, self.store.job(id)).await
    }

    async fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        self.faults
            .pass(Verb::Finished, self.store.finished(state, before, limit))
            .await
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        self.faults
            .pass(Verb::Attempts, self.store.attempts(id))
            .await
    }

    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError> {
        self.faults.pass(Verb::Cancel, self.store.cancel(id)).await
    }

    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError> {
        self.faults
            .pass(Verb::Replay, self.store.replay(id, as_new))
            .await
    }

    async fn replay_with(
        &self,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        self.faults
            .pass(Verb::ReplayWith, self.store.replay_with(id, as_new, edit))
            .await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.faults.pass(Verb::Counts, self.store.counts()).await
    }

    async fn unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        self.faults
            .pass(Verb::Unread, self.store.unread(queues, known))
            .await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        self.faults.pass(Verb::Waiting, self.store.waiting()).await
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
        self.faults.pass(Verb::WaitingSample, call).await
    }

    async fn verify(&self, limit: usize) -> Result<Verified, StoreError> {
        self.faults
            .pass(Verb::Verify, self.store.verify(limit))
            .await
    }

    async fn prune(&self, retention: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        self.faults
            .pass(Verb::Prune, self.store.prune(retention, limit))
            .await
    }
}

#[async_trait]
impl Versions for Faulty {
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError> {
        self.faults
            .pass(Verb::NewestVersion, self.store.newest_version(cache_key))
            .await
    }
}
