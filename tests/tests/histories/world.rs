//! The two stores on one clock, and how a step is played on both.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use queue_runtime::error::StoreError;
use queue_runtime::job::{Claimed, JobState, Lease, NewJob, Settled, Settlement};
use queue_runtime::seam::Seam as _;
use queue_runtime::store::memory::MemoryStore;
use queue_runtime::store::{ClaimRequest, Heartbeat, Retention, Store};
use queue_testkit::clock::TestSeam;
use queue_testkit::conformance::jobs::{job_type, queue, rescue_of};
use queue_testkit::conformance::{Fixture, Picture};

use super::offers::{CACHE_KEYS, QUEUES, TYPES, bounded, edit, new_job, request, settlement};
use super::rules::Rules;
use super::steps::{Ending, Step};
use super::tally::Tally;
use super::tokens::{Tokens, Told};

pub(crate) struct World<F> {
    seam: TestSeam,
    memory: Arc<dyn Store>,
    memory_beat: Box<dyn Heartbeat>,
    /// The name of the store that is compared.
    name: &'static str,
    store: Arc<dyn Store>,
    beat: Box<dyn Heartbeat>,
    /// Clears up after the store when it is dropped, which is after the store.
    fixture: F,
    tokens: Tokens,
    /// Every job that was ever offered, and every run that was ever claimed.
    offered: Vec<NewJob>,
    runs: Vec<Claimed>,
    rules: Rules,
    tally: Tally,
}

/// Calls one verb on both stores; both must answer the same.
macro_rules! both {
    ($world:ident.$verb:ident($($argument:expr),*)) => {{
        let memory = $world.memory.$verb($($argument),*).await;
        let store = $world.store.$verb($($argument),*).await;
        $world.same(stringify!($verb), memory, store)?
    }};
}

/// Counts a position round among `count` things, from the newest.
fn nth_newest(position: usize, count: usize) -> Option<usize> {
    (count > 0).then(|| count - 1 - position % count)
}

impl<F: Fixture> World<F> {
    pub(crate) async fn open(name: &'static str, fixture: F) -> Result<Self, String> {
        let seam = TestSeam::new(1);
        let failed = |error: StoreError| error.to_string();
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(seam.shared()));
        let memory_beat = memory.heartbeat().await.map_err(failed)?;
        let store = fixture.open(seam.shared()).await;
        let store = store.map_err(|error| error.to_string())?;
        let beat = store.heartbeat().await.map_err(failed)?;
        Ok(Self {
            seam,
            memory,
            memory_beat,
            name,
            store,
            beat,
            fixture,
            tokens: Tokens::default(),
            offered: Vec::new(),
            runs: Vec::new(),
            rules: Rules::default(),
            tally: Tally::default(),
        })
    }

    /// Plays a step on both stores, and checks the rules afterwards.
    pub(crate) async fn play(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Insert(offers) => {
                let (seam, now) = (&self.seam, self.seam.now());
                let jobs = offers
                    .iter()
                    .map(|offer| new_job(seam.job_id(), offer, now));
                let jobs = jobs.collect();
                self.insert(jobs).await?;
            }
            Step::InsertAgain { job } => {
                if let Some(index) = nth_newest(*job, self.offered.len()) {
                    self.insert(vec![self.offered[index].clone()]).await?;
                }
            }
            Step::Claim(claim) => {
                let request = request(claim);
                let next_due = both!(self.next_due(&request));
                self.tally.next_due(next_due);
                let memory = self.memory.claim(&request).await;
                let store = self.store.claim(&request).await;
                self.claimed(memory, store, &request, &[])?;
            }
            Step::Settle(endings) => self.settle(&self.settlements(endings)).await?,
            Step::Exchange(endings, claim) => {
                let (settlements, request) = (self.settlements(endings), request(claim));
                let memory = self.memory.exchange(&settlements, &request).await;
                let translated = self.tokens.settlements(&settlements);
                let store = self.store.exchange(&translated, &request).await;
                let (settled, claimed) = parted(memory);
                let (its_settled, its_claimed) = parted(store);
                let settled = self.same("exchange", settled, its_settled)?;
                self.tally.settled(&settlements, &settled);
                self.claimed(claimed, its_claimed, &request, &settlements)?;
            }
            Step::Extend { leases, seconds } => self.extend(leases, *seconds).await?,
            Step::Advance { millis } => self.seam.advance(Duration::from_millis(*millis)),
            Step::Rescue { limit } => {
                let expired = both!(self.expired(*limit));
                let rescues: Vec<Settlement> = expired
                    .iter()
                    .map(|record| bounded(rescue_of(record), record.max_attempts))
                    .collect();
                self.settle(&rescues).await?;
            }
            Step::Cancel { job } => {
                if let Some(index) = nth_newest(*job, self.offered.len()) {
                    let reply = both!(self.cancel(self.offered[index].id));
                    self.tally.cancelling(reply);
                }
            }
            Step::Replay { job, as_new } => {
                if let Some(index) = nth_newest(*job, self.offered.len()) {
                    let id = self.offered[index].id;
                    let reply = both!(self.replay(id, *as_new));
                    self.tally.replaying("replay", &reply, *as_new);
                    self.rules.may_replay(id);
                }
            }
            Step::ReplayWith {
                job,
                as_new,
                edit: editing,
            } => {
                if let Some(index) = nth_newest(*job, self.offered.len()) {
                    let id = self.offered[index].id;
                    let reply = both!(self.replay_with(id, *as_new, &edit(editing)));
                    self.tally.replaying("edit", &reply, *as_new);
                    self.rules.may_replay(id);
                }
            }
            Step::Prune { seconds, limit } => {
                let kept = Duration::from_secs(*seconds);
                let retention = Retention {
                    done: kept,
                    cancelled: kept,
                    dead_letter: kept * 2,
                };
                let pruned = both!(self.prune(&retention, *limit));
                self.tally.pruned(pruned);
                self.rules.pruned(pruned.jobs);
            }
            Step::Look {
                state,
                after,
                limit,
            } => self.look(*state, *after, *limit).await?,
        }
        both!(self.counts());
        let picture = self.picture_of(&self.memory).await;
        for id in self.rules.changed(&picture) {
            both!(self.job(id));
            both!(self.attempts(id));
        }
        self.tally.shown(&picture);
        self.rules.hold(picture, self.seam.now())
    }

    /// Says that both stores show the same, whole.
    pub(crate) async fn end(&self) -> Result<(), String> {
        let memory = self.picture_of(&self.memory).await;
        let store = self.tokens.picture(self.picture_of(&self.store).await);
        let mut differences = memory.differences(&store);
        differences.extend(store.broken_rules());
        if !differences.is_empty() {
            let (name, differences) = (self.name, differences.join("\n"));
            return Err(format!(
                "memory (expected) and {name} (found) differ:\n{differences}"
            ));
        }
        for key in CACHE_KEYS {
            both!(self.newest_version(key));
        }
        let queues = QUEUES.map(queue);
        both!(self.unread(&queues, &[(job_type(TYPES[0]), 1)]));
        both!(self.unread(&queues[..1], &[]));
        let verified = both!(self.verify(100));
        if !verified.is_sound() {
            return Err(format!("both stores are broken alike:\n{verified}"));
        }
        for waiting in both!(self.waiting()) {
            let (name, queue) = (&waiting.job_type, &waiting.queue);
            let schema = waiting.payload_schema;
            let first = both!(self.waiting_sample(name, queue, schema, None, 2));
            let after = first.last().map(|job| job.id);
            both!(self.waiting_sample(name, queue, schema, after, 100));
        }
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.store.close().await;
        let discarded = self.fixture.discard().await;
        discarded.expect("the fixture removes what was stored");
    }

    /// Says what has happened.
    pub(crate) fn reached(self) -> BTreeSet<String> {
        self.tally.reached()
    }

    /// Takes an answer that both stores gave, told in memory's tokens.
    fn same<T: PartialEq + Debug + Told>(
        &self,
        verb: &str,
        memory: Result<T, StoreError>,
        mut store: Result<T, StoreError>,
    ) -> Result<T, String> {
        if let Ok(answer) = &mut store {
            answer.told(&self.tokens);
        }
        match (memory, store) {
            (Ok(memory), Ok(store)) if memory == store => Ok(memory),
            (memory, store) => Err(format!(
                "{verb} answers differently:\n  memory {memory:?}\n  {} {store:?}",
                self.name
            )),
        }
    }

    async fn picture_of(&self, store: &Arc<dyn Store>) -> Picture {
        let ids: Vec<_> = self.offered.iter().map(|job| job.id).collect();
        Picture::of(store.as_ref(), &ids).await
    }

    async fn insert(&mut self, jobs: Vec<NewJob>) -> Result<(), String> {
        let replies = both!(self.insert(&jobs));
        self.tally.inserted(&jobs, &replies, self.rules.before());
        self.rules.inserted(&jobs, &replies)?;
        self.offered.extend(jobs);
        Ok(())
    }

    fn claimed(
        &mut self,
        memory: Result<Vec<Claimed>, StoreError>,
        store: Result<Vec<Claimed>, StoreError>,
        request: &ClaimRequest,
        settled_before: &[Settlement],
    ) -> Result<(), String> {
        if let (Ok(memory), Ok(store)) = (&memory, &store) {
            self.tokens.claimed(memory, store)?;
        }
        let claimed = self.same("claim", memory, store)?;
        self.tally.claimed(&claimed, request);
        self.rules.claimed(&claimed, request, settled_before)?;
        self.runs.extend(claimed);
        Ok(())
    }

    async fn settle(&mut self, settlements: &[Settlement]) -> Result<(), String> {
        let memory = self.memory.settle(settlements).await;
        let translated = self.tokens.settlements(settlements);
        let store = self.store.settle(&translated).await;
        let replies = self.same("settle", memory, store)?;
        self.tally.settled(settlements, &replies);
        Ok(())
    }

    async fn extend(&mut self, leases: &[usize], seconds: u64) -> Result<(), String> {
        let count = self.runs.len();
        let leases: Vec<Lease> = leases
            .iter()
            .filter_map(|&position| Some(self.runs[nth_newest(position, count)?].lease()))
            .collect();
        let lease = Duration::from_secs(seconds);
        let memory = self.memory_beat.extend(&leases, lease).await;
        let store = self.beat.extend(&self.tokens.leases(&leases), lease).await;
        let replies = self.same("extend", memory, store)?;
        self.tally.extended(&replies);
        Ok(())
    }

    async fn look(
        &mut self,
        state: usize,
        after: Option<usize>,
        limit: usize,
    ) -> Result<(), String> {
        let state = [JobState::Done, JobState::DeadLetter, JobState::Cancelled][state];
        let before = after.and_then(|position| {
            let job = &self.offered[nth_newest(position, self.offered.len())?];
            let seen = self.rules.before().jobs().get(&job.id)?;
            Some((seen.record.finished_at?, job.id))
        });
        let jobs = both!(self.finished(state, before, limit));
        self.tally.looked(jobs.len(), before.is_some());
        Ok(())
    }

    fn settlements(&self, endings: &[(usize, Ending)]) -> Vec<Settlement> {
        let count = self.runs.len();
        endings
            .iter()
            .filter_map(|&(position, ending)| {
                let run = &self.runs[nth_newest(position, count)?];
                Some(settlement(run, ending))
            })
            .collect()
    }
}

/// Takes an exchange apart, into what the two verbs would have answered.
fn parted(
    exchanged: Result<(Vec<Settled>, Vec<Claimed>), StoreError>,
) -> (
    Result<Vec<Settled>, StoreError>,
    Result<Vec<Claimed>, StoreError>,
) {
    match exchanged {
        Ok((settled, claimed)) => (Ok(settled), Ok(claimed)),
        Err(error) => (Err(error), Ok(Vec::new())),
    }
}
