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
        /// The panic's message and place.
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

/// The word for how an attempt ended, as stored, logged and counted.
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
    /// Lost with its worker.
    Lost,
}

impl JobResult {
    /// Every result.
    pub const ALL: [Self; 8] = [
        Self::Success,
        Self::Superseded,
        Self::Retry,
        Self::Snooze,
        Self::DeadLetter,
        Self::Cancelled,
        Self::HandedBack,
        Self::Lost,
    ];

    /// Returns the word that is stored, logged and counted.
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

impl FromStr for JobResult {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|result| result.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no job result"))
    }
}
