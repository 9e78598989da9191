//! The exact change a store applies when an attempt ends, and the store's answer.
//!
//! A settlement is decided by `rules::transition` and guarded by `(id, token)` in the store: it
//! is applied whole or not at all: [`Settled::Stale`] and [`Settled::Held`] are replies, not errors.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::ids::{JobId, LeaseToken};
use super::outcome::{JobResult, OutcomeKind};
use super::record::{JobState, Lease};

/// The change that ends one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// The job.
    pub id: JobId,
    /// The token of the claim that this settles.
    pub token: LeaseToken,
    /// Where the job goes.
    pub change: Change,
    /// What the attempt came to, kept in its history.
    pub outcome: OutcomeKind,
    /// The error text, cut to 8 KiB; kept as `last_error` when present.
    pub error: Option<String>,
    /// The job's `attempts` after this change.
    pub attempts: u32,
    /// The job's `crashes` after this change.
    pub crashes: u32,
    /// The job's `snoozes` after this change.
    pub snoozes: u32,
    /// True for a rescue: applied only if the lease has also run out by the store's clock.
    pub only_if_expired: bool,
}

/// Where a settled job goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Final: finished well.
    Done,
    /// Back to waiting, due this long after the settlement by the store's clock. If a cancel was
    /// asked for meanwhile, the store makes it `Cancelled` instead.
    Queued {
        /// The delay.
        delay: Duration,
    },
    /// Final: kept for inspection.
    DeadLetter {
        /// Why.
        reason: DeadReason,
    },
    /// Final: called off.
    Cancelled,
}

impl Change {
    /// Returns the state that the job is in afterwards, unless a pending cancel overrides it.
    pub const fn state(&self) -> JobState {
        match self {
            Self::Done => JobState::Done,
            Self::Queued { .. } => JobState::Queued,
            Self::DeadLetter { .. } => JobState::DeadLetter,
            Self::Cancelled => JobState::Cancelled,
        }
    }
}

/// Why a job is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// Every allowed attempt failed.
    AttemptsExhausted,
    /// The handler said that trying again cannot help.
    Permanent,
    /// The payload cannot be read as the handler's arguments.
    Undecodable,
    /// It took its worker down too often.
    Crashed,
    /// It asked to be put off too often.
    Snoozed,
    /// Its deadline passed.
    Deadline,
}

impl DeadReason {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::AttemptsExhausted,
        Self::Permanent,
        Self::Undecodable,
        Self::Crashed,
        Self::Snoozed,
        Self::Deadline,
    ];

    /// Returns the word that is stored, logged and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::Permanent => "permanent",
            Self::Undecodable => "undecodable",
            Self::Crashed => "crashed",
            Self::Snoozed => "snoozed",
            Self::Deadline => "deadline",
        }
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for DeadReason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no dead-letter reason"))
    }
}

/// What a store says to a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Applied; the job is now in this state.
    Applied(JobState),
    /// Refused: the token is not the job's current one, or (a rescue) the lease has not run out.
    /// Nothing was changed. So is a rescue of a job whose row somebody else's transaction holds.
    Stale,
    /// Put off: somebody else's transaction holds the job's row, or one that would change with it.
    /// Nothing was changed; offer the settlement again.
    Held,
}

impl Settlement {
    /// Returns what the attempt meant for a job that is in `state` since it was settled, as logs
    /// and metrics say it.
    pub const fn result(&self, state: JobState) -> JobResult {
        match (state, self.outcome) {
            (JobState::Done, OutcomeKind::Superseded) => JobResult::Superseded,
            (JobState::Done, _) => JobResult::Success,
            (JobState::DeadLetter, _) => JobResult::DeadLetter,
            (JobState::Cancelled, _) => JobResult::Cancelled,
            (JobState::Queued | JobState::Processing, kind) => match kind {
                OutcomeKind::Snooze => JobResult::Snooze,
                OutcomeKind::HandedBack => JobResult::HandedBack,
                OutcomeKind::Lost => JobResult::Lost,
                _ => JobResult::Retry,
            },
        }
    }

    /// Returns the lease that this settles.
    pub fn lease(&self) -> Lease {
        Lease {
            id: self.id,
            token: self.token,
        }
    }
}
