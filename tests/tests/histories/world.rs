//! The two stores on one clock, and how a step is played on both.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use queue_runtime::job::{
    CacheKey, Change, Claimed, DeadReason, DedupeUntil, Due, Fingerprint, Idempotency, Lease,
    NewJob, OnDuplicate, OutcomeKind, Settlement,
};
use queue_runtime::seam::Seam as _;
use queue_runtime::store::{ClaimRequest, Heartbeat, Retention, Store, Suspects};
use queue_testkit::clock::TestSeam;
use queue_testkit::conformance::jobs::{
    called_off, dead_because, done, handed_back, held, job_type, plain, queue, rescue, rescue_of,
    retry, snooze, worker,
};
use queue_testkit::conformance::{Fixture as _, MemoryFixture, Picture, SqliteFixture};

use super::rules::Rules;
use super::steps::{Claim, Ending, Mode, Offer, Step, Until};

const TYPES: [&str; 2] = ["send_welcome", "bill"];
const QUEUES: [&str; 2] = ["default", "mail"];
const CACHE_KEYS: [&str; 2] = ["user:1", "user:2"];
const CRASHES_MAX: u32 = 3;

pub(crate) struct World {
    seam: TestSeam,
    memory: Arc<dyn Store>,
    sqlite: Arc<dyn Store>,
    heartbeats: [Box<dyn Heartbeat>; 2],
    _file: SqliteFixture,
    /// Every job that was ever offered, and every run that was ever claimed.
    offered: Vec<NewJob>,
    runs: Vec<Claimed>,
    rules: Rules,
}

/// Calls one verb on both stores; both must answer the same.
macro_rules! both {
    ($world:ident.$verb:ident($($argument:expr),*)) => {{
        let memory = $world.memory.$verb($($argument),*).await;
        let sqlite = $world.sqlite.$verb($($argument),*).await;
        same(stringify!($verb), memory, sqlite)?
    }};
}

fn same<T: PartialEq + Debug>(
    verb: &str,
    memory: Result<T, impl Debug>,
    sqlite: Result<T, impl Debug>,
) -> Result<T, String> {
    match (memory, sqlite) {
        (Ok(memory), Ok(sqlite)) if memory == sqlite => Ok(memory),
        (memory, sqlite) => Err(format!(
            "{verb} answers differently:\n  memory {memory:?}\n  sqlite {sqlite:?}"
        )),
    }
}

/// Counts a position round among `count` things, from the newest.
fn nth_newest(position: usize, count: usize) -> Option<usize> {
    (count > 0).then(|| count - 1 - position % count)
}

impl World {
    pub(crate) async fn open() -> Result<Self, String> {
        let seam = TestSeam::new(1);
        let file = SqliteFixture::new();
        let open = async |opened: Result<Arc<dyn Store>, _>| {
            let store =
                opened.map_err(|error: queue_runtime::error::BoxError| error.to_string())?;
            let heartbeat = store.heartbeat().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((store, heartbeat))
        };
        let (memory, beat_memory) = open(MemoryFixture.open(seam.shared()).await).await?;
        let (sqlite, beat_sqlite) = open(file.open(seam.shared()).await).await?;
        Ok(Self {
            seam,
            memory,
            sqlite,
            heartbeats: [beat_memory, beat_sqlite],
            _file: file,
            offered: Vec::new(),
            runs: Vec::new(),
            rules: Rules::default(),
        })
    }

    /// Plays a step on both stores, and checks the rules afterwards.
    pub(crate) async fn play(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Insert(offers) => {
                let jobs: Vec<NewJob> = offers.iter().map(|offer| self.new_job(offer)).collect();
                self.insert(jobs).await?;
            }
            Step::InsertAgain { job } => {
                if let Some(index) = nth_newest(*job, self.offered.len()) {
                    self.insert(vec![self.offered[index].clone()]).await?;
                }
            }
            Step::Claim(claim) => {
                let request = request(claim);
                both!(self.next_due(&request));
                let claimed = both!(self.claim(&request));
                self.rules.claimed(&claimed, &request, &[])?;
                self.runs.extend(claimed);
            }
            Step::Settle(endings) => {
                let settlements = self.settlements(endings);
                both!(self.settle(&settlements));
            }
            Step::Exchange(endings, claim) => {
                let (settlements, request) = (self.settlements(endings), request(claim));
                let (_, claimed) = both!(self.exchange(&settlements, &request));
                self.rules.claimed(&claimed, &request, &settlements)?;
                self.runs.extend(claimed);
            }
            Step::Extend { leases, seconds } => self.extend(leases, *seconds).await?,
            Step::Advance { millis } => self.seam.advance(Duration::from_millis(*millis)),
            Step::Rescue { limit } => {
                let expired = both!(self.expired(*limit));
                let rescues: Vec<Settlement> = expired
                    .iter()
                    .map(|record| bounded(rescue_of(record), record.max_attempts))
                    .collect();
                both!(self.settle(&rescues));
            }
            Step::Cancel { job } => {
                if let Some(index) = nth_newest(*job, self.offered.len()) {
                    both!(self.cancel(self.offered[index].id));
                }
            }
            Step::Replay { job, as_new } => {
                if let Some(index) = nth_newest(*job, self.offered.len()) {
                    let id = self.offered[index].id;
                    both!(self.replay(id, *as_new));
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
                self.rules.pruned(pruned.jobs);
            }
        }
        both!(self.counts());
        let ids: Vec<_> = self.offered.iter().map(|job| job.id).collect();
        let picture = Picture::of(self.memory.as_ref(), &ids).await;
        for id in self.rules.changed(&picture) {
            both!(self.job(id));
            both!(self.attempts(id));
        }
        self.rules.hold(picture, self.seam.now())
    }

    /// Says that both stores show the same, whole.
    pub(crate) async fn end(&mut self) -> Result<(), String> {
        let ids: Vec<_> = self.offered.iter().map(|job| job.id).collect();
        let memory = Picture::of(self.memory.as_ref(), &ids).await;
        let sqlite = Picture::of(self.sqlite.as_ref(), &ids).await;
        let differences = memory.differences(&sqlite);
        if !differences.is_empty() {
            let differences = differences.join("\n");
            return Err(format!(
                "memory (expected) and sqlite (found) differ:\n{differences}"
            ));
        }
        for key in CACHE_KEYS {
            both!(self.newest_version(key));
        }
        both!(self.unknown_types(&[job_type(TYPES[0])]));
        self.sqlite.close().await;
        Ok(())
    }

    async fn insert(&mut self, jobs: Vec<NewJob>) -> Result<(), String> {
        let replies = both!(self.insert(&jobs));
        self.rules.inserted(&jobs, &replies)?;
        self.offered.extend(jobs);
        Ok(())
    }

    async fn extend(&mut self, leases: &[usize], seconds: u64) -> Result<(), String> {
        let count = self.runs.len();
        let leases: Vec<Lease> = leases
            .iter()
            .filter_map(|&position| Some(self.runs[nth_newest(position, count)?].lease()))
            .collect();
        let lease = Duration::from_secs(seconds);
        let [memory, sqlite] = &mut self.heartbeats;
        let memory = memory.extend(&leases, lease).await;
        same("extend", memory, sqlite.extend(&leases, lease).await).map(drop)
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

    fn new_job(&self, offer: &Offer) -> NewJob {
        let job = plain(self.seam.job_id());
        NewJob {
            job_type: job_type(TYPES[offer.kind]),
            queue: queue(QUEUES[offer.queue]),
            payload: format!(r#"{{"n":{}}}"#, offer.payload),
            payload_schema: offer.schema,
            priority: offer.priority,
            max_attempts: offer.max_attempts,
            due: Due::After(Duration::from_secs(offer.delay_seconds)),
            dedupe: offer.dedupe.and_then(|(key, until, mode)| {
                let until = match until {
                    Until::Finished => DedupeUntil::Finished,
                    Until::Started => DedupeUntil::Started,
                    Until::Seconds(seconds) => DedupeUntil::Window(Duration::from_secs(seconds)),
                };
                let mode = match mode {
                    Mode::Keep => OnDuplicate::Keep,
                    Mode::Replace => OnDuplicate::Replace,
                    Mode::Rerun => OnDuplicate::Rerun,
                };
                held(&format!("k{key}"), until, mode)
            }),
            idempotency: offer
                .idempotency
                .map(|(key, request, seconds)| Idempotency {
                    key: format!("i{key}"),
                    fingerprint: Fingerprint::from_stored(format!(r#"{{"n":"{request}"}}"#)),
                    window: Duration::from_secs(seconds),
                }),
            cache: offer.cache.map(|(key, version)| CacheKey {
                key: CACHE_KEYS[key].to_owned(),
                version,
            }),
            ..job
        }
    }
}

fn request(claim: &Claim) -> ClaimRequest {
    let mut queues = QUEUES.map(queue).to_vec();
    if claim.turned {
        queues.reverse();
    }
    ClaimRequest {
        worker: worker(&format!("w@{}", claim.worker)),
        queues,
        job_types: vec![(job_type(TYPES[0]), claim.schema), (job_type(TYPES[1]), 2)],
        limit: claim.limit,
        lease: Duration::from_secs(claim.seconds),
        suspects: Suspects::NONE,
    }
}

fn settlement(run: &Claimed, ending: Ending) -> Settlement {
    let seconds = Duration::from_secs;
    let settlement = match ending {
        Ending::Done => done(run),
        Ending::Retry { seconds: delay } => retry(run, seconds(delay)),
        Ending::Snooze { seconds: delay } => snooze(run, seconds(delay)),
        Ending::HandedBack => handed_back(run),
        Ending::Dead => dead_because(run, DeadReason::Permanent),
        Ending::CalledOff => called_off(run),
        Ending::Rescued => rescue(run),
    };
    bounded(settlement, run.max_attempts)
}

/// Ends a job that would wait again with a budget used up, as the rules do.
fn bounded(settlement: Settlement, max_attempts: u32) -> Settlement {
    let waits = matches!(settlement.change, Change::Queued { .. });
    let reason = match settlement {
        _ if settlement.crashes >= CRASHES_MAX => DeadReason::Crashed,
        _ if settlement.attempts >= max_attempts => DeadReason::AttemptsExhausted,
        _ => return settlement,
    };
    if !waits {
        return settlement;
    }
    Settlement {
        change: Change::DeadLetter { reason },
        outcome: OutcomeKind::Permanent,
        ..settlement
    }
}
