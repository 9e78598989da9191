//! Random histories come out the same on this store and on the memory store.
//!
//! The seed is in the failure message; running it again repeats the history.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use super::world::{Hand, World, job};
use crate::job::{
    CacheKey, Change, Claimed, DeadReason, Dedupe, DedupeUntil, Due, Idempotency, JobId, JobType,
    Lease, NewJob, OnDuplicate, OutcomeKind, QueueName, Settlement, WorkerId,
};
use crate::rules::dedupe::fingerprint;
use crate::seam::Seam;
use crate::store::memory::MemoryStore;
use crate::store::{ClaimRequest, Edit, EditedJob, Retention, Store, Suspects};

const TYPES: [&str; 3] = ["mail", "report", "thumb"];
const QUEUES: [&str; 2] = ["default", "slow"];

/// Draws what happens next.
struct Dice {
    rng: Rng,
    hand: Arc<Hand>,
    sent: Vec<NewJob>,
    claimed: Vec<Claimed>,
}

impl Dice {
    fn span(&mut self, max_ms: u64) -> Duration {
        Duration::from_millis(self.rng.u64(0..=max_ms))
    }

    fn new_job(&mut self) -> NewJob {
        let mut new = job(&*self.hand, TYPES[self.rng.usize(..3)]);
        if self.rng.u8(..20) == 0 && !self.sent.is_empty() {
            return self.sent[self.rng.usize(..self.sent.len())].clone();
        }
        new.queue = QueueName::new(QUEUES[self.rng.usize(..2)]).unwrap();
        new.payload = format!(r#"{{"a":{},"b":{}}}"#, self.rng.u8(..2), self.rng.u8(..2));
        new.payload_schema = self.rng.u32(1..=2);
        new.priority = self.rng.i16(-2..=2);
        new.due = match self.rng.u8(..5) {
            0 => Due::After(self.span(5_000)),
            1 => Due::At(self.hand.now().saturating_add(Duration::from_secs(1))),
            2 => Due::At(self.hand.now().saturating_sub(Duration::from_secs(1))),
            _ => Due::Now,
        };
        new.deadline = self.rng.bool().then(|| self.span(60_000));
        if self.rng.bool() {
            new.dedupe = Some(Dedupe {
                key: format!("k{}", self.rng.u8(..3)),
                until: match self.rng.u8(..3) {
                    0 => DedupeUntil::Finished,
                    1 => DedupeUntil::Started,
                    _ => DedupeUntil::Window(self.span(8_000)),
                },
                on_duplicate: match self.rng.u8(..3) {
                    0 => OnDuplicate::Keep,
                    1 => OnDuplicate::Replace,
                    _ => OnDuplicate::Rerun,
                },
            });
        }
        if self.rng.u8(..3) == 0 {
            new.idempotency = Some(Idempotency {
                key: format!("i{}", self.rng.u8(..4)),
                fingerprint: fingerprint(&new.payload),
                window: self.span(8_000),
            });
        }
        if self.rng.u8(..3) == 0 {
            new.cache = Some(CacheKey {
                key: format!("c{}", self.rng.u8(..2)),
                version: self.rng.u64(..9),
            });
        }
        new.trace_context = self.rng.bool().then(|| "00-\"é\u{1f600}\"".to_owned());
        self.sent.push(new.clone());
        new
    }

    fn edit(&mut self) -> Edit {
        let sent = self.sent.len();
        let like = self.new_job();
        self.sent.truncate(sent);
        let edit = Edit::new(like.payload, like.payload_schema).unwrap();
        match self.rng.u8(..3) {
            0 => edit,
            _ => edit.of_job(EditedJob {
                job_types: vec![like.job_type],
                dedupe_key: like.dedupe.map(|dedupe| dedupe.key),
                dedupe_until_started: self.rng.bool(),
                cache: like.cache,
            }),
        }
    }

    fn request(&mut self) -> ClaimRequest {
        let mut queues: Vec<_> = QUEUES.iter().map(|q| QueueName::new(q).unwrap()).collect();
        self.rng.shuffle(&mut queues);
        queues.truncate(self.rng.usize(1..=2));
        let job_types = TYPES[self.rng.usize(..2)..]
            .iter()
            .map(|t| (JobType::new(t).unwrap(), self.rng.u32(1..=2)))
            .collect();
        ClaimRequest {
            worker: WorkerId::new("w@1").unwrap(),
            queues,
            job_types,
            limit: self.rng.usize(..6),
            lease: self.span(4_000),
            suspects: Suspects {
                crashes: self.rng.u32(1..3),
                limit: self.rng.usize(..3),
            },
        }
    }

    fn settlements(&mut self) -> Vec<Settlement> {
        let count = self.rng.usize(..5).min(self.claimed.len());
        (0..count).map(|_| self.settlement()).collect()
    }

    fn settlement(&mut self) -> Settlement {
        let claimed = self.claimed[self.rng.usize(..self.claimed.len())].clone();
        let (change, outcome) = match self.rng.u8(..6) {
            0 => (
                Change::Queued {
                    delay: Duration::ZERO,
                },
                OutcomeKind::HandedBack,
            ),
            1 => (
                Change::Queued {
                    delay: self.span(3_000),
                },
                OutcomeKind::Retry,
            ),
            2 => {
                let reason = DeadReason::Permanent;
                (Change::DeadLetter { reason }, OutcomeKind::Permanent)
            }
            3 => (Change::Cancelled, OutcomeKind::Cancelled),
            _ => (Change::Done, OutcomeKind::Success),
        };
        Settlement {
            id: claimed.id,
            token: claimed.token,
            change,
            outcome,
            error: self.rng.bool().then(|| "it \"failed\"\n".to_owned()),
            attempts: self.rng.u32(..4),
            crashes: self.rng.u32(..3),
            snoozes: self.rng.u32(..3),
            only_if_expired: self.rng.u8(..4) == 0,
        }
    }

    fn some_id(&mut self) -> JobId {
        match self.sent.len() {
            0 => self.hand.job_id(),
            len => self.sent[self.rng.usize(..len)].id,
        }
    }
}

/// Does the same thing on both stores and compares what they say.
async fn step(dice: &mut Dice, ours: &dyn Store, spec: &dyn Store) -> String {
    macro_rules! both {
        ($verb:ident($($argument:expr),*)) => {{
            let said = ours.$verb($($argument),*).await.unwrap();
            assert_eq!(said, spec.$verb($($argument),*).await.unwrap(), stringify!($verb));
            said
        }};
    }
    match dice.rng.u8(..16) {
        0..5 => {
            let jobs: Vec<_> = (0..dice.rng.usize(1..5)).map(|_| dice.new_job()).collect();
            println!("insert {jobs:?}");
            let said = both!(insert(&jobs));
            format!("insert {jobs:?} -> {said:?}")
        }
        5..8 => {
            let request = dice.request();
            let said = both!(claim(&request));
            dice.claimed.extend(said.clone());
            format!("claim {request:?} -> {said:?}")
        }
        8..10 => {
            let settlements = dice.settlements();
            let said = both!(settle(&settlements));
            format!("settle {settlements:?} -> {said:?}")
        }
        10 => {
            let (settlements, request) = (dice.settlements(), dice.request());
            let said = both!(exchange(&settlements, &request));
            dice.claimed.extend(said.1.clone());
            format!("exchange {settlements:?} {request:?} -> {said:?}")
        }
        11 => {
            let id = dice.some_id();
            let said = both!(cancel(id));
            format!("cancel {id} -> {said:?}")
        }
        12 => {
            let (id, as_new) = (dice.some_id(), dice.rng.bool());
            let Some(edit) = dice.rng.bool().then(|| dice.edit()) else {
                let said = both!(replay(id, as_new));
                return format!("replay {id} {as_new} -> {said:?}");
            };
            let said = both!(replay_with(id, as_new, &edit));
            format!("replay {id} {as_new} {edit:?} -> {said:?}")
        }
        13 => {
            let retention = Retention {
                done: dice.span(9_000),
                cancelled: dice.span(9_000),
                dead_letter: dice.span(9_000),
            };
            let limit = dice.rng.usize(..4);
            let said = both!(prune(&retention, limit));
            format!("prune {retention:?} {limit} -> {said:?}")
        }
        14 => {
            let leases: Vec<Lease> = dice
                .claimed
                .iter()
                .rev()
                .take(4)
                .map(Claimed::lease)
                .collect();
            let span = dice.span(4_000);
            let mut beats = (
                ours.heartbeat().await.unwrap(),
                spec.heartbeat().await.unwrap(),
            );
            let said = beats.0.extend(&leases, span).await.unwrap();
            assert_eq!(said, beats.1.extend(&leases, span).await.unwrap(), "extend");
            format!("extend {leases:?} -> {said:?}")
        }
        _ => {
            let span = dice.span(2_500);
            dice.hand.advance(span);
            format!("{span:?} pass")
        }
    }
}

/// Compares everything that can be looked at.
async fn compare(dice: &mut Dice, ours: &dyn Store, spec: &dyn Store) {
    let request = dice.request();
    for id in dice.sent.iter().map(|job| job.id) {
        let (a, b) = (ours.job(id).await, spec.job(id).await);
        assert_eq!(a.unwrap(), b.unwrap(), "job {id}");
        let (a, b) = (ours.attempts(id).await, spec.attempts(id).await);
        assert_eq!(a.unwrap(), b.unwrap(), "attempts of {id}");
    }
    assert_eq!(ours.counts().await.unwrap(), spec.counts().await.unwrap());
    assert_eq!(ours.waiting().await.unwrap(), spec.waiting().await.unwrap());
    let known = [(JobType::new("report").unwrap(), 1)];
    assert_eq!(
        ours.unread(&request.queues, &known).await.unwrap(),
        spec.unread(&request.queues, &known).await.unwrap(),
        "unread in {:?}",
        request.queues
    );
    assert_eq!(
        ours.expired(3).await.unwrap(),
        spec.expired(3).await.unwrap(),
        "expired"
    );
    assert_eq!(
        ours.next_due(&request).await.unwrap(),
        spec.next_due(&request).await.unwrap(),
        "next_due of {request:?}"
    );
    for key in ["c0", "c1", "none"] {
        assert_eq!(
            ours.newest_version(key).await.unwrap(),
            spec.newest_version(key).await.unwrap()
        );
    }
    assert_eq!(ours.now().await.unwrap(), spec.now().await.unwrap());
}

async fn history(seed: u64, steps: usize) {
    let world = World::new().await;
    let hand = Arc::clone(&world.hand);
    let spec = MemoryStore::new(Arc::clone(&hand) as Arc<dyn Seam>);
    let mut dice = Dice {
        rng: Rng::with_seed(seed),
        hand,
        sent: Vec::new(),
        claimed: Vec::new(),
    };
    let ours = Arc::clone(&world.store);
    for number in 0..steps {
        println!("seed {seed}, step {number}");
        let said = step(&mut dice, &*ours, &spec).await;
        println!("{said}");
        if number % 10 == 9 {
            compare(&mut dice, &*ours, &spec).await;
        }
    }
    compare(&mut dice, &*ours, &spec).await;
    world.store.close().await;
}

#[tokio::test]
async fn random_histories_are_those_of_the_memory_store() {
    for seed in 0..12 {
        history(seed, 120).await;
    }
}
