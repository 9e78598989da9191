//! Lease tokens of the store that is compared, told in those of the store in memory.
//!
//! How a store counts is its own affair, as long as a claim's token is higher than every one
//! before. So a token means the claim that it came from, and is translated on its way in and out.

use std::collections::BTreeMap;

use queue_runtime::job::{Attempt, Claimed, JobRecord, Lease, LeaseToken, Settlement};
use queue_testkit::conformance::Picture;

/// Which token of the store belongs to which of memory.
#[derive(Default)]
pub(crate) struct Tokens {
    to_memory: BTreeMap<LeaseToken, LeaseToken>,
    to_store: BTreeMap<LeaseToken, LeaseToken>,
}

/// Stands for a token that no claim has told of.
const UNHEARD_OF: LeaseToken = LeaseToken::new(i64::MIN);

impl Tokens {
    /// Learns from one claim that both stores have answered.
    ///
    /// # Errors
    /// If they took different jobs, or a token of the store is not above all before it.
    pub(crate) fn claimed(&mut self, memory: &[Claimed], store: &[Claimed]) -> Result<(), String> {
        let ids = |runs: &[Claimed]| runs.iter().map(|run| run.id).collect::<Vec<_>>();
        let (expected, found) = (ids(memory), ids(store));
        if expected != found {
            return Err(format!("memory claims {expected:?}, the store {found:?}"));
        }
        let newest = self.to_memory.last_key_value().map(|(token, _)| *token);
        for (run, its_run) in memory.iter().zip(store) {
            if newest.is_some_and(|newest| its_run.token <= newest) {
                return Err(format!("a token not above {newest:?}: {its_run:?}"));
            }
            if self.to_memory.insert(its_run.token, run.token).is_some() {
                return Err(format!("a token that was given before: {its_run:?}"));
            }
            self.to_store.insert(run.token, its_run.token);
        }
        Ok(())
    }

    fn in_memory(&self, token: LeaseToken) -> LeaseToken {
        self.to_memory.get(&token).copied().unwrap_or(UNHEARD_OF)
    }

    fn in_store(&self, token: LeaseToken) -> LeaseToken {
        self.to_store.get(&token).copied().unwrap_or(UNHEARD_OF)
    }

    pub(crate) fn settlements(&self, settlements: &[Settlement]) -> Vec<Settlement> {
        let mut translated = settlements.to_vec();
        for settlement in &mut translated {
            settlement.token = self.in_store(settlement.token);
        }
        translated
    }

    pub(crate) fn leases(&self, leases: &[Lease]) -> Vec<Lease> {
        let mut translated = leases.to_vec();
        for lease in &mut translated {
            lease.token = self.in_store(lease.token);
        }
        translated
    }

    pub(crate) fn picture(&self, picture: Picture) -> Picture {
        picture.with_tokens(|token| self.in_memory(token))
    }
}

/// What a store answers, told in memory's tokens.
pub(crate) trait Told {
    fn told(&mut self, _: &Tokens) {}
}

impl Told for Claimed {
    fn told(&mut self, tokens: &Tokens) {
        self.token = tokens.in_memory(self.token);
    }
}

impl Told for JobRecord {
    fn told(&mut self, tokens: &Tokens) {
        self.lock_token = self.lock_token.map(|token| tokens.in_memory(token));
    }
}

impl Told for Attempt {
    fn told(&mut self, tokens: &Tokens) {
        self.token = tokens.in_memory(self.token);
    }
}

impl<T: Told> Told for Vec<T> {
    fn told(&mut self, tokens: &Tokens) {
        self.iter_mut().for_each(|item| item.told(tokens));
    }
}

impl<T: Told> Told for Option<T> {
    fn told(&mut self, tokens: &Tokens) {
        self.iter_mut().for_each(|item| item.told(tokens));
    }
}

/// Answers without a token.
macro_rules! told_as_they_are {
    ($($answer:ty),+ $(,)?) => { $(impl Told for $answer {})+ };
}

told_as_they_are! {
    queue_runtime::store::Inserted,
    queue_runtime::store::Extended,
    queue_runtime::store::Cancelling,
    queue_runtime::store::Replaying,
    queue_runtime::store::Pruned,
    queue_runtime::store::Counts,
    queue_runtime::store::Unread,
    queue_runtime::store::Waiting,
    queue_runtime::job::Settled,
    queue_runtime::job::Verified,
    (queue_runtime::job::JobType, u64),
    std::time::Duration,
    u64,
}

#[test]
fn only_a_token_above_all_before_belongs_to_a_claim() {
    use queue_runtime::time::Timestamp;
    use queue_testkit::conformance::jobs::{job_type, queue};
    let run = |id: u64, token| Claimed {
        id: queue_runtime::seam::uuid_v7(id, 0),
        job_type: job_type("send_welcome"),
        queue: queue("default"),
        payload: String::new(),
        payload_schema: 1,
        attempt: 1,
        max_attempts: 1,
        crashes: 0,
        snoozes: 0,
        generation: 0,
        token: LeaseToken::new(token),
        locked_until: Timestamp::EPOCH,
        claimed_at: Timestamp::EPOCH,
        run_at: Timestamp::EPOCH,
        created_at: Timestamp::EPOCH,
        deadline: None,
        cancel_requested: false,
        idempotency_key: None,
        cache: None,
        trace_context: None,
    };
    let mut tokens = Tokens::default();
    // Within one claim in any order, as long as all are above what was there.
    let first = tokens.claimed(&[run(1, 1), run(2, 2)], &[run(1, 900), run(2, 70)]);
    assert_eq!(first, Ok(()));
    assert_eq!(tokens.in_store(LeaseToken::new(2)), LeaseToken::new(70));
    assert_eq!(tokens.in_memory(LeaseToken::new(900)), LeaseToken::new(1));
    assert_eq!(tokens.in_memory(LeaseToken::new(3)), UNHEARD_OF);

    for token in [70, 899, 900] {
        let refused = tokens.claimed(&[run(3, 3)], &[run(3, token)]);
        assert!(refused.is_err(), "{token} is not above 900");
    }
    let twice = tokens.claimed(&[run(3, 3), run(4, 4)], &[run(3, 901), run(4, 901)]);
    assert!(twice.is_err(), "one token for two claims");
    let others = tokens.claimed(&[run(5, 5)], &[run(6, 999)]);
    assert!(others.is_err(), "another job");
}
