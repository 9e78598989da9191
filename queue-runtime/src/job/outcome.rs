//! What a run came to, in the handler's terms; `rules::transition` turns it into a settlement.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How one attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The handler succeeded.
    Success,
    /// The job's data is older than the newest known version; nothing was done, and that is fine.
    Superseded {
        /// The newest known version.
        newest: u64,
    },
    /// The handler failed with an error that may pass.
    Retry {
        /// The error text.
        error: String,
    },
    /// The handler failed and says when to come back.
    RetryAfter {
        /// How long to wait; bounded by [`RETRY_AFTER_MAX`](crate::rules::RETRY_AFTER_MAX).
        delay: Duration,
        /// The error text.
        error: String,
    },
    /// The attempt ran into its time limit.
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// The handler panicked.
    Panicked {
        /// The panic's message; its place is in what the panic hook printed.
        error: String,
    },
    /// The handler asks to be run later; costs no attempt.
    Snooze {
        /// How long to wait.
        delay: Duration,
    },
    /// Trying again cannot help.
    Permanent {
        /// The error text.
        error: String,
    },
    /// The stored payload cannot be read as the handler's arguments.
    Undecodable {
        /// What is wrong, with the path inside the payload.
        error: String,
    },
    /// The job's deadline passed before it could be run.
    DeadlinePassed,
    /// The job was called off, by request or by its handler.
    Cancelled {
        /// Why, if the handler said so.
        reason: Option<String>,
    },
    /// The worker stops and hands the job back unfinished; costs nothing.
    HandedBack,
    /// The lease ran out without a settlement: crash, freeze, or cut from the store.
    Lost,
}

impl Outcome {
    /// Returns the word for it.
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Success => OutcomeKind::Success,
            Self::Superseded { .. } => OutcomeKind::Superseded,
            Self::Retry { .. } => OutcomeKind::Retry,
            Self::RetryAfter { .. } => OutcomeKind::RetryAfter,
            Self::TimedOut { .. } => OutcomeKind::TimedOut,
            Self::Panicked { .. } => OutcomeKind::Panicked,
            Self::Snooze { .. } => OutcomeKind::Snooze,
            Self::Permanent { .. } => OutcomeKind::Permanent,
            Self::Undecodable { .. } => OutcomeKind::Undecodable,
            Self::DeadlinePassed => OutcomeKind::DeadlinePassed,
            Self::Cancelled { .. } => OutcomeKind::Cancelled,
            Self::HandedBack => OutcomeKind::HandedBack,
            Self::Lost => OutcomeKind::Lost,
        }
    }
}

impl Outcome {
    /// Returns the handler's error text, if it gave one.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Retry { error }
            | Self::RetryAfter { error, .. }
            | Self::Panicked { error }
            | Self::Permanent { error }
            | Self::Undecodable { error } => Some(error),
            Self::Cancelled { reason } => reason.as_deref(),
            _ => None,
        }
    }
}

/// The word for how an attempt ended, as history keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// The handler succeeded.
    Success,
    /// Older than the newest known version; nothing was done.
    Superseded,
    /// Failed with an error that may pass.
    Retry,
    /// Failed and said when to come back.
    RetryAfter,
    /// Cut by its time limit.
    TimedOut,
    /// Panicked.
    Panicked,
    /// Put off by the handler.
    Snooze,
    /// Failed for good.
    Permanent,
    /// Its payload could not be read.
    Undecodable,
    /// Its deadline had passed.
    DeadlinePassed,
    /// Called off.
    Cancelled,
    /// Handed back by a worker that stops.
    HandedBack,
    /// Lost with its worker.
    Lost,
}

impl OutcomeKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Success,
        Self::Superseded,
        Self::Retry,
        Self::RetryAfter,
        Self::TimedOut,
        Self::Panicked,
        Self::Snooze,
        Self::Permanent,
        Self::Undecodable,
        Self::DeadlinePassed,
        Self::Cancelled,
        Self::HandedBack,
        Self::Lost,
    ];

    /// Returns the word that is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Superseded => "superseded",
            Self::Retry => "retry",
            Self::RetryAfter => "retry_after",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::Snooze => "snooze",
            Self::Permanent => "permanent",
            Self::Undecodable => "undecodable",
            Self::DeadlinePassed => "deadline_passed",
            Self::Cancelled => "cancelled",
            Self::HandedBack => "handed_back",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for OutcomeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no outcome"))
    }
}

/// What an attempt meant for its job, in the few words that logs and metrics use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum JobResult {
    /// The handler succeeded.
    Success,
    /// Older than the newest known version; counts as success.
    Superseded,
    /// Failed; another attempt follows.
    Retry,
    /// Put off by the handler.
    Snooze,
    /// Failed for good.
    DeadLetter,
    /// Called off.
    Cancelled,
    /// Handed back by a worker that stops.
    HandedBack,
    /// Lost with its worker; another attempt follows.
    Lost,
}

impl JobResult {
    /// Returns the word that is logged and counted.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Superseded => "superseded",
            Self::Retry => "retry",
            Self::Snooze => "snooze",
            Self::DeadLetter => "dead_letter",
            Self::Cancelled => "cancelled",
            Self::HandedBack => "handed_back",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for JobResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
