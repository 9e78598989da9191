//! The one place that picks a job's next state.
//!
//! An outcome and the job's counters go in, the exact change comes out. Stores apply it under
//! the lease token and add one thing of their own: a job that would wait again is cancelled
//! instead if somebody asked for that meanwhile.

use std::time::Duration;

use super::{RETRY_AFTER_MAX, backoff, error_text};
use crate::job::{
    Backoff, Change, Claimed, DeadReason, JobId, JobRecord, LeaseToken, Outcome, OutcomeKind,
    Settlement,
};
use crate::time::Timestamp;

/// How an attempt's job stands when the attempt ends. `attempts` includes this attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The job.
    pub id: JobId,
    /// The token of the claim.
    pub token: LeaseToken,
    /// Runs started so far.
    pub attempts: u32,
    /// Runs allowed.
    pub max_attempts: u32,
    /// Crashes in a row before this attempt.
    pub crashes: u32,
    /// Times it was put off before.
    pub snoozes: u32,
    /// After this instant it is not tried again.
    pub deadline: Option<Timestamp>,
}

impl From<&Claimed> for Standing {
    fn from(claimed: &Claimed) -> Self {
        Self {
            id: claimed.id,
            token: claimed.token,
            attempts: claimed.attempt,
            max_attempts: claimed.max_attempts,
            crashes: claimed.crashes,
            snoozes: claimed.snoozes,
            deadline: claimed.deadline,
        }
    }
}

impl Standing {
    /// Reads the standing of a claimed job; `None` if the record was never claimed.
    pub fn of_record(record: &JobRecord) -> Option<Self> {
        Some(Self {
            id: record.id,
            token: record.lock_token?,
            attempts: record.attempts,
            max_attempts: record.max_attempts,
            crashes: record.crashes,
            snoozes: record.snoozes,
            deadline: record.deadline,
        })
    }
}

/// How often a job may go wrong in each way, and how long it waits in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The delay before a retry.
    pub backoff: Backoff,
    /// At this many crashes in a row a job is a dead letter; 3 unless configured.
    pub crashes_max: u32,
    /// More snoozes than this make a job a dead letter; 1,000 unless configured.
    pub snoozes_max: u32,
}

impl RetryPolicy {
    /// Returns from how many crashes in a row a job is a suspect: one more would be its end.
    ///
    /// A worker runs one suspect at a time. A job that kills its worker takes its neighbours
    /// along, and without this they would run beside it again until all are dead letters.
    pub fn suspect_crashes(&self) -> u32 {
        self.crashes_max.saturating_sub(1).max(1)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            backoff: Backoff::DEFAULT,
            crashes_max: 3,
            snoozes_max: 1_000,
        }
    }
}

/// Decides what completing a job changes: it is done, whatever else is known about it.
pub fn complete(standing: &Standing) -> Settlement {
    // Neither the policy nor the time has a say in a success.
    let policy = RetryPolicy::default();
    settle(standing, &Outcome::Success, &policy, Timestamp::EPOCH, 0)
}

/// Decides what becomes of a job whose attempt came to `outcome` at `now` (the store's clock).
///
/// `seed` spreads the delay. The result is final unless a retry is left, allowed and before the
/// deadline; whoever is given an attempt back has its count lowered by one.
pub fn settle(
    standing: &Standing,
    outcome: &Outcome,
    policy: &RetryPolicy,
    now: Timestamp,
    seed: u64,
) -> Settlement {
    let job = Decision {
        standing,
        policy,
        now,
        seed,
        kind: outcome.kind(),
    };
    let settlement = match outcome {
        Outcome::Success => job.change(Change::Done),
        Outcome::Superseded { newest } => job
            .change(Change::Done)
            .attempt_given_back()
            .saying(&format!("superseded: version {newest} is known")),
        Outcome::Retry { error } => job.again_by_backoff().saying(error),
        Outcome::TimedOut { limit } => job
            .again_by_backoff()
            .saying(&format!("timed out after {limit:?}")),
        Outcome::Panicked { error } => job.again_by_backoff().saying(&format!("panicked: {error}")),
        Outcome::RetryAfter { delay, error } => {
            job.again((*delay).min(RETRY_AFTER_MAX)).saying(error)
        }
        Outcome::Snooze { delay } => job.snoozed((*delay).min(RETRY_AFTER_MAX)),
        Outcome::Permanent { error } => job.dead(DeadReason::Permanent).saying(error),
        Outcome::Undecodable { error } => job.dead(DeadReason::Undecodable).saying(error),
        Outcome::DeadlinePassed => job
            .dead(DeadReason::Deadline)
            .attempt_given_back()
            .saying("the deadline passed before the job could run"),
        Outcome::Cancelled { reason } => job
            .change(Change::Cancelled)
            .maybe_saying(reason.as_deref()),
        Outcome::HandedBack => job.handed_back(),
        Outcome::Lost => job.lost(),
    };
    debug_assert!(
        settlement.attempts <= standing.max_attempts
            || !matches!(settlement.change, Change::Queued { .. }),
        "a job that used up its attempts must not wait again: {settlement:?}"
    );
    settlement
}

struct Decision<'a> {
    standing: &'a Standing,
    policy: &'a RetryPolicy,
    now: Timestamp,
    seed: u64,
    kind: OutcomeKind,
}

impl Decision<'_> {
    /// A change with the counters of a normal settlement: the attempt counts, the row of crashes
    /// ends.
    fn change(&self, change: Change) -> Settlement {
        Settlement {
            id: self.standing.id,
            token: self.standing.token,
            change,
            outcome: self.kind,
            error: None,
            attempts: self.standing.attempts,
            crashes: 0,
            snoozes: self.standing.snoozes,
            only_if_expired: false,
        }
    }

    fn dead(&self, reason: DeadReason) -> Settlement {
        self.change(Change::DeadLetter { reason })
    }

    fn again_by_backoff(&self) -> Settlement {
        self.again(backoff::delay(
            self.policy.backoff,
            self.standing.attempts,
            self.seed,
        ))
    }

    fn again(&self, delay: Duration) -> Settlement {
        if self.standing.attempts >= self.standing.max_attempts {
            return self.dead(DeadReason::AttemptsExhausted);
        }
        if self.too_late_after(delay) {
            return self.dead(DeadReason::Deadline);
        }
        self.change(Change::Queued { delay })
    }

    fn snoozed(&self, delay: Duration) -> Settlement {
        let snoozes = self.standing.snoozes.saturating_add(1);
        let settlement = if snoozes > self.policy.snoozes_max {
            self.dead(DeadReason::Snoozed)
        } else if self.too_late_after(delay) {
            self.dead(DeadReason::Deadline)
        } else {
            self.change(Change::Queued { delay })
        };
        Settlement {
            snoozes,
            ..settlement.attempt_given_back()
        }
    }

    fn handed_back(&self) -> Settlement {
        let delay = Duration::ZERO;
        let settlement = self.change(Change::Queued { delay }).attempt_given_back();
        Settlement {
            crashes: self.standing.crashes,
            ..settlement
        }
    }

    /// The lease ran out. The first return is immediate, since the crash was probably not the
    /// job's doing; later ones wait longer each time.
    fn lost(&self) -> Settlement {
        let crashes = self.standing.crashes.saturating_add(1);
        let delay = match crashes {
            1 => Duration::ZERO,
            _ => backoff::delay(self.policy.backoff, crashes - 1, self.seed),
        };
        let settlement = if crashes >= self.policy.crashes_max {
            self.dead(DeadReason::Crashed)
        } else {
            self.again(delay)
        };
        Settlement {
            crashes,
            only_if_expired: true,
            ..settlement
        }
        .saying("recovered after visibility timeout: the lease ran out without a result")
    }

    fn too_late_after(&self, delay: Duration) -> bool {
        self.standing
            .deadline
            .is_some_and(|end| self.now.saturating_add(delay) > end)
    }
}

impl Settlement {
    fn attempt_given_back(self) -> Self {
        Self {
            attempts: self.attempts.saturating_sub(1),
            ..self
        }
    }

    fn saying(self, error: &str) -> Self {
        Self {
            error: Some(error_text::fit(error)),
            ..self
        }
    }

    fn maybe_saying(self, error: Option<&str>) -> Self {
        match error {
            Some(error) => self.saying(error),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobResult;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn standing(attempts: u32) -> Standing {
        Standing {
            id: "0193b5a0-7c3e-7000-8000-000000000000"
                .parse()
                .expect("a UUID"),
            token: LeaseToken::new(7),
            attempts,
            max_attempts: 3,
            crashes: 0,
            snoozes: 0,
            deadline: None,
        }
    }

    fn error() -> Outcome {
        Outcome::Retry {
            error: "no route".to_owned(),
        }
    }

    fn policy() -> RetryPolicy {
        RetryPolicy {
            backoff: Backoff::Fixed {
                delay: Duration::from_secs(9),
                jitter_percent: 0,
            },
            ..RetryPolicy::default()
        }
    }

    fn check(
        standing: Standing,
        outcome: &Outcome,
        change: Change,
        result: JobResult,
    ) -> Settlement {
        let settlement = settle(&standing, outcome, &policy(), NOW, 0);
        assert_eq!(
            (
                &settlement.change,
                settlement.result(settlement.change.state())
            ),
            (&change, result),
            "{outcome:?}"
        );
        settlement
    }

    fn queued(seconds: u64) -> Change {
        Change::Queued {
            delay: Duration::from_secs(seconds),
        }
    }

    fn dead(reason: DeadReason) -> Change {
        Change::DeadLetter { reason }
    }

    #[test]
    fn every_outcome_has_its_place() {
        use JobResult as R;
        let s = standing(1);
        let text = || "x".to_owned();
        check(s, &Outcome::Success, Change::Done, R::Success);
        check(
            s,
            &Outcome::Superseded { newest: 4 },
            Change::Done,
            R::Superseded,
        );
        check(s, &error(), queued(9), R::Retry);
        check(
            s,
            &Outcome::TimedOut {
                limit: Duration::from_secs(1),
            },
            queued(9),
            R::Retry,
        );
        check(s, &Outcome::Panicked { error: text() }, queued(9), R::Retry);
        let after = Outcome::RetryAfter {
            delay: Duration::from_secs(4),
            error: text(),
        };
        check(s, &after, queued(4), R::Retry);
        check(
            s,
            &Outcome::Snooze {
                delay: Duration::from_secs(5),
            },
            queued(5),
            R::Snooze,
        );
        let permanent = Outcome::Permanent { error: text() };
        check(s, &permanent, dead(DeadReason::Permanent), R::DeadLetter);
        let undecodable = Outcome::Undecodable { error: text() };
        check(
            s,
            &undecodable,
            dead(DeadReason::Undecodable),
            R::DeadLetter,
        );
        check(
            s,
            &Outcome::DeadlinePassed,
            dead(DeadReason::Deadline),
            R::DeadLetter,
        );
        check(
            s,
            &Outcome::Cancelled { reason: None },
            Change::Cancelled,
            R::Cancelled,
        );
        check(s, &Outcome::HandedBack, queued(0), R::HandedBack);
        check(s, &Outcome::Lost, queued(0), R::Lost);
    }

    #[test]
    fn max_attempts_means_exactly_that_many_started_runs() {
        check(standing(2), &error(), queued(9), JobResult::Retry);
        let last = check(
            standing(3),
            &error(),
            dead(DeadReason::AttemptsExhausted),
            JobResult::DeadLetter,
        );
        assert_eq!(
            (last.attempts, last.error.as_deref()),
            (3, Some("no route"))
        );
    }

    #[test]
    fn a_job_without_retries_dies_at_its_first_error() {
        let once = Standing {
            max_attempts: 1,
            ..standing(1)
        };
        check(
            once,
            &error(),
            dead(DeadReason::AttemptsExhausted),
            JobResult::DeadLetter,
        );
    }

    #[test]
    fn snooze_hand_back_and_superseded_give_the_attempt_back() {
        for outcome in [
            Outcome::Snooze {
                delay: Duration::ZERO,
            },
            Outcome::HandedBack,
            Outcome::Superseded { newest: 1 },
            Outcome::DeadlinePassed,
        ] {
            let settlement = settle(&standing(2), &outcome, &policy(), NOW, 0);
            assert_eq!(settlement.attempts, 1, "{outcome:?}");
        }
    }

    #[test]
    fn a_job_that_keeps_killing_its_worker_dies_at_the_third_crash() {
        let crashed = |crashes| Standing {
            crashes,
            max_attempts: 9,
            ..standing(crashes + 1)
        };
        let first = check(crashed(0), &Outcome::Lost, queued(0), JobResult::Lost);
        assert_eq!((first.crashes, first.only_if_expired), (1, true));
        check(crashed(1), &Outcome::Lost, queued(9), JobResult::Lost);
        let third = check(
            crashed(2),
            &Outcome::Lost,
            dead(DeadReason::Crashed),
            JobResult::DeadLetter,
        );
        assert_eq!((third.crashes, third.only_if_expired), (3, true));
    }

    #[test]
    fn a_crash_on_the_last_attempt_is_the_end() {
        check(
            standing(3),
            &Outcome::Lost,
            dead(DeadReason::AttemptsExhausted),
            JobResult::DeadLetter,
        );
    }

    #[test]
    fn a_normal_settlement_ends_the_row_of_crashes_and_a_hand_back_does_not() {
        let crashed = Standing {
            crashes: 2,
            ..standing(1)
        };
        assert_eq!(settle(&crashed, &error(), &policy(), NOW, 0).crashes, 0);
        assert_eq!(
            settle(&crashed, &Outcome::HandedBack, &policy(), NOW, 0).crashes,
            2
        );
    }

    #[test]
    fn too_many_snoozes_are_the_end() {
        let at = |snoozes| Standing {
            snoozes,
            ..standing(1)
        };
        let snooze = Outcome::Snooze {
            delay: Duration::from_secs(5),
        };
        check(at(999), &snooze, queued(5), JobResult::Snooze);
        check(
            at(1_000),
            &snooze,
            dead(DeadReason::Snoozed),
            JobResult::DeadLetter,
        );
    }

    #[test]
    fn no_retry_is_planned_beyond_the_deadline() {
        let until = |seconds| Standing {
            deadline: Some(NOW.saturating_add(Duration::from_secs(seconds))),
            ..standing(1)
        };
        check(until(9), &error(), queued(9), JobResult::Retry);
        check(
            until(8),
            &error(),
            dead(DeadReason::Deadline),
            JobResult::DeadLetter,
        );
        let snooze = Outcome::Snooze {
            delay: Duration::from_secs(9),
        };
        check(
            until(8),
            &snooze,
            dead(DeadReason::Deadline),
            JobResult::DeadLetter,
        );
    }

    #[test]
    fn a_wait_of_two_hundred_years_is_cut() {
        let ages = Outcome::RetryAfter {
            delay: Duration::from_hours(200 * 366 * 24),
            error: "busy".to_owned(),
        };
        check(
            standing(1),
            &ages,
            Change::Queued {
                delay: RETRY_AFTER_MAX,
            },
            JobResult::Retry,
        );
    }
}
