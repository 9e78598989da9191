//! Properties of the pure rules, over inputs that nobody thought of.

use std::time::Duration;

use proptest::prelude::*;
use queue_runtime::job::{
    Backoff, Change, DeadReason, DedupeUntil, JobResult, LeaseToken, OnDuplicate, Outcome,
};
use queue_runtime::rules::dedupe::{self, Placement, SlotHolder};
use queue_runtime::rules::transition::{RetryPolicy, Standing, settle};
use queue_runtime::rules::{backoff, coherence, error_text, payload, prefetch};
use queue_runtime::seam::uuid_v7;
use queue_runtime::time::Timestamp;

fn spans() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..10_000_u64).prop_map(Duration::from_millis),
        any::<u64>().prop_map(Duration::from_millis),
        Just(Duration::MAX),
    ]
}

fn attempts() -> impl Strategy<Value = u32> {
    prop_oneof![0..40_u32, any::<u32>(), Just(u32::MAX)]
}

proptest! {
    #[test]
    fn an_exponential_delay_stays_between_its_spread_and_its_cap(
        base in spans(), max in spans(), jitter_percent in 0..=100_u8,
        attempt in attempts(), seed: u64,
    ) {
        let policy = |jitter_percent| Backoff::Exponential { base, max, jitter_percent };
        let plain = backoff::delay(policy(0), attempt, seed);
        let spread = backoff::delay(policy(jitter_percent), attempt, seed);

        prop_assert!(plain <= max && spread <= max.max(plain));
        let low = plain.mul_f64(1.0 - f64::from(jitter_percent) / 100.0);
        // A millisecond of rounding, and the share of a float in very long spans.
        prop_assert!(spread + Duration::from_millis(1) + spread.mul_f64(1e-9) >= low);
    }

    #[test]
    fn a_later_attempt_never_waits_less(base in spans(), max in spans(), attempt in attempts()) {
        let policy = Backoff::Exponential { base, max, jitter_percent: 0 };
        let next = attempt.saturating_add(1);
        prop_assert!(backoff::delay(policy, next, 0) >= backoff::delay(policy, attempt, 0));
    }

    #[test]
    fn the_same_seed_gives_the_same_delay(attempt in attempts(), seed: u64) {
        let delay = || backoff::delay(Backoff::DEFAULT, attempt, seed);
        prop_assert_eq!(delay(), delay());
    }
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let text = "[a-z\\x00é]{0,20}";
    prop_oneof![
        Just(Outcome::Success),
        any::<u64>().prop_map(|newest| Outcome::Superseded { newest }),
        text.prop_map(|error| Outcome::Retry { error }),
        (spans(), text).prop_map(|(delay, error)| Outcome::RetryAfter { delay, error }),
        spans().prop_map(|limit| Outcome::TimedOut { limit }),
        text.prop_map(|error| Outcome::Panicked { error }),
        spans().prop_map(|delay| Outcome::Snooze { delay }),
        text.prop_map(|error| Outcome::Permanent { error }),
        text.prop_map(|error| Outcome::Undecodable { error }),
        Just(Outcome::DeadlinePassed),
        Just(Outcome::Cancelled { reason: None }),
        Just(Outcome::HandedBack),
        Just(Outcome::Lost),
    ]
}

prop_compose! {
    fn standings()(
        max_attempts in 1..8_u32, attempt in 1..8_u32, crashes in 0..4_u32,
        snoozes in 0..1_002_u32, deadline in proptest::option::of(0..2_000_000_i64),
    ) -> Standing {
        Standing {
            id: uuid_v7(1, 1),
            token: LeaseToken::new(1),
            attempts: attempt.min(max_attempts),
            max_attempts,
            crashes,
            snoozes,
            deadline: deadline.map(Timestamp::from_millis),
        }
    }
}

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

proptest! {
    #[test]
    fn a_job_waits_again_only_while_it_has_an_attempt_left(
        standing in standings(), outcome in outcomes(), seed: u64,
    ) {
        let settlement = settle(&standing, &outcome, &RetryPolicy::default(), NOW, seed);
        prop_assert!(settlement.attempts <= standing.attempts);
        prop_assert!(settlement.attempts + 1 >= standing.attempts);
        if let Change::Queued { delay } = settlement.change {
            prop_assert!(settlement.attempts < standing.max_attempts);
            prop_assert!(settlement.crashes < 3 || outcome == Outcome::HandedBack);
            prop_assert!(settlement.snoozes <= 1_000 || settlement.snoozes == standing.snoozes);
            let asks_for_time = outcome != Outcome::HandedBack;
            let due = NOW.saturating_add(delay);
            prop_assert!(!asks_for_time || standing.deadline.is_none_or(|end| due <= end));
        }
    }

    #[test]
    fn only_a_lost_lease_is_guarded_by_expiry(standing in standings(), outcome in outcomes()) {
        let settlement = settle(&standing, &outcome, &RetryPolicy::default(), NOW, 0);
        prop_assert_eq!(settlement.only_if_expired, outcome == Outcome::Lost);
        let is_dead = matches!(settlement.change, Change::DeadLetter { .. });
        prop_assert_eq!(settlement.result(settlement.change.state()) == JobResult::DeadLetter, is_dead);
    }

    #[test]
    fn a_handler_that_keeps_failing_starts_exactly_max_attempts_runs(max_attempts in 1..50_u32) {
        let mut started = 0;
        loop {
            started += 1;
            let standing = Standing {
                id: uuid_v7(1, 1), token: LeaseToken::new(1), attempts: started, max_attempts,
                crashes: 0, snoozes: 0, deadline: None,
            };
            let failed = Outcome::Retry { error: "no".to_owned() };
            let settlement = settle(&standing, &failed, &RetryPolicy::default(), NOW, 0);
            match settlement.change {
                Change::Queued { .. } => {}
                change => {
                    let reason = DeadReason::AttemptsExhausted;
                    prop_assert_eq!(change, Change::DeadLetter { reason });
                    break;
                }
            }
        }
        prop_assert_eq!(started, max_attempts);
    }

    #[test]
    fn an_error_text_is_short_and_can_be_stored(text in "[a-zé\\x00]{0,200}", times in 1..200_usize) {
        let kept = error_text::fit(&text.repeat(times));
        prop_assert!(!kept.is_empty() && kept.len() <= error_text::ERROR_BYTES_MAX);
        prop_assert!(!kept.contains('\0'));
    }

    #[test]
    fn a_claim_never_asks_for_more_than_slots_and_stock_allow(
        concurrency in 1..1_000_usize, running in 0..1_000_usize, stock in 0..1_000_usize,
        rate in any::<f64>(),
    ) {
        let wanted = prefetch::wanted(concurrency, running, stock, rate);
        prop_assert!(wanted + running + stock <= (concurrency + prefetch::STOCK_MAX).max(running + stock));
    }

    #[test]
    fn a_newcomer_is_stored_in_a_free_slot_or_answered_by_a_taken_one(
        holder in proptest::option::of(prop_oneof![Just(SlotHolder::Waiting), Just(SlotHolder::Processing)]),
        mode in prop_oneof![Just(OnDuplicate::Keep), Just(OnDuplicate::Replace), Just(OnDuplicate::Rerun)],
        behind: bool,
    ) {
        let behind = behind && holder.is_some();
        let taken = [holder.is_some(), behind];
        match dedupe::place(mode, holder, behind) {
            Placement::Insert { slot } => prop_assert!(!taken[usize::from(slot)]),
            Placement::Answer { slot, rewrite } => {
                prop_assert!(taken[usize::from(slot)]);
                prop_assert!(!rewrite || mode == OnDuplicate::Replace);
                // Only a waiting job is rewritten: the one behind always waits.
                prop_assert!(!rewrite || slot == 1 || holder == Some(SlotHolder::Waiting));
            }
        }
    }

    #[test]
    fn a_fingerprint_does_not_depend_on_field_order(
        fields in proptest::collection::btree_map("[a-z]{1,6}", any::<i64>(), 1..6),
    ) {
        let object = |fields: Vec<(&String, &i64)>| {
            let fields: Vec<_> = fields.iter().map(|(name, n)| format!("\"{name}\": {n}")).collect();
            format!("{{{}}}", fields.join(" ,"))
        };
        let forward = dedupe::fingerprint(&object(fields.iter().collect()));
        let backward = dedupe::fingerprint(&object(fields.iter().rev().collect()));
        prop_assert_eq!(&forward, &backward);
        prop_assert!(dedupe::differing_fields(forward.as_str(), backward.as_str()).is_empty());
    }

    #[test]
    fn a_version_in_a_cache_never_falls_within_an_incarnation(
        publishes in proptest::collection::vec((0..3_u64, 0..10_u64), 0..40),
    ) {
        let mut entry = coherence::EntryState { incarnation: 1, floor: 0, stored: None };
        for (incarnation, version) in publishes {
            let before = entry;
            if coherence::publish(entry, incarnation, version) == coherence::Publish::Store {
                prop_assert_eq!(incarnation, entry.incarnation);
                entry.floor = version;
                entry.stored = Some(version);
            }
            prop_assert!(entry.stored >= before.stored && entry.floor >= before.floor);
        }
    }

    #[test]
    fn any_json_without_nul_and_depth_is_accepted(text in "[ -~é]{0,60}", depth in 1..60_usize) {
        let nested = format!("{}{}{}", "[".repeat(depth), serde_json::json!(text), "]".repeat(depth));
        let object = format!("{{\"a\":{nested}}}");
        prop_assert!(payload::check(&object).is_ok());
    }
}

#[test]
fn a_dedupe_key_is_held_until_the_end_unless_said_otherwise() {
    assert_eq!(DedupeUntil::default(), DedupeUntil::Finished);
    assert_eq!(OnDuplicate::default(), OnDuplicate::Keep);
}
