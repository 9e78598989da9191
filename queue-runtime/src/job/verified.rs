//! What a look through a whole store found: which rules the stored data breaks, and where.

use std::fmt;

use super::ids::{JobId, LeaseToken};

/// A rule that stored data keeps at every moment, whatever happened to workers meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Invariant {
    /// Every stored value can be read.
    Readable,
    /// A job is live or final, never both.
    OneTable,
    /// The state of a job is one of those that its table is for.
    State,
    /// Only a running job has a lease.
    Lease,
    /// No more attempts than allowed, and no more than were started.
    Attempts,
    /// No more crashes than leases that were lost.
    Crashes,
    /// No more snoozes than runs that asked for one.
    Snoozes,
    /// Numbers of attempts rise with their tokens.
    AttemptOrder,
    /// An attempt belongs to a stored job.
    AttemptJob,
    /// The attempt of a job's token is in its history.
    NewestAttempt,
    /// No attempt has a higher token than its job.
    NewestToken,
    /// An attempt is open while it runs, and only then.
    OpenAttempt,
    /// A token belongs to one attempt.
    TokenOnce,
    /// The next token is higher than all before it.
    TokenCounter,
    /// One live job holds a dedupe key.
    DedupeHolder,
    /// A job waits behind a key that somebody holds.
    DedupeBehind,
    /// An idempotency key that does not end yet has a job.
    KeyJob,
    /// An idempotency key does not end before its job.
    KeyEnd,
    /// A key answers with a job of its own type.
    KeyType,
    /// A lease that ran out is taken back by a rescue.
    Rescue,
}

impl Invariant {
    /// Every rule, in the order in which findings are listed.
    pub const ALL: [Self; 20] = [
        Self::Readable,
        Self::OneTable,
        Self::State,
        Self::Lease,
        Self::Attempts,
        Self::Crashes,
        Self::Snoozes,
        Self::AttemptOrder,
        Self::AttemptJob,
        Self::NewestAttempt,
        Self::NewestToken,
        Self::OpenAttempt,
        Self::TokenOnce,
        Self::TokenCounter,
        Self::DedupeHolder,
        Self::DedupeBehind,
        Self::KeyJob,
        Self::KeyEnd,
        Self::KeyType,
        Self::Rescue,
    ];

    /// Returns the word that names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Readable => "readable",
            Self::OneTable => "one_table",
            Self::State => "state",
            Self::Lease => "lease",
            Self::Attempts => "attempts",
            Self::Crashes => "crashes",
            Self::Snoozes => "snoozes",
            Self::AttemptOrder => "attempt_order",
            Self::AttemptJob => "attempt_job",
            Self::NewestAttempt => "newest_attempt",
            Self::NewestToken => "newest_token",
            Self::OpenAttempt => "open_attempt",
            Self::TokenOnce => "token_once",
            Self::TokenCounter => "token_counter",
            Self::DedupeHolder => "dedupe_holder",
            Self::DedupeBehind => "dedupe_behind",
            Self::KeyJob => "key_job",
            Self::KeyEnd => "key_end",
            Self::KeyType => "key_type",
            Self::Rescue => "rescue",
        }
    }

    /// Returns the rule as a sentence.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Readable => "Every stored value can be read by this library.",
            Self::OneTable => "A job is live or final, never both.",
            Self::State => "A live job is queued or processing, and a final one is neither.",
            Self::Lease => "A running job has a whole lease, and no other job has a part of one.",
            Self::Attempts => {
                "A job has no more attempts than allowed, and no more than its history shows."
            }
            Self::Crashes => "A job counts no more crashes than leases that it lost.",
            Self::Snoozes => "A job counts no more snoozes than runs that asked for one.",
            Self::AttemptOrder => {
                "A later attempt has the number of the one before it, the next one, or one again."
            }
            Self::AttemptJob => "Every attempt belongs to a job that is stored.",
            Self::NewestAttempt => "The attempt of a job's newest token is in its history.",
            Self::NewestToken => "No attempt has a higher token than its job.",
            Self::OpenAttempt => {
                "An attempt is open while its job runs under its token, and then ends."
            }
            Self::TokenOnce => "A lease token belongs to one attempt of one job.",
            Self::TokenCounter => "The store's newest lease token is as high as every stored one.",
            Self::DedupeHolder => {
                "At most one live job holds a dedupe key, and at most one waits behind it."
            }
            Self::DedupeBehind => {
                "A job that waits behind a dedupe key is queued, and a job holds the key."
            }
            Self::KeyJob => "An idempotency key without an end belongs to a job that is stored.",
            Self::KeyEnd => "An idempotency key does not end before its job.",
            Self::KeyType => {
                "An idempotency key or dedupe window belongs to a job of its own type."
            }
            Self::Rescue => "A lease that ran out is taken back within minutes.",
        }
    }

    /// Says whether breaking it is no fault of what is stored, but of nobody looking after it.
    pub const fn is_warning(self) -> bool {
        matches!(self, Self::Rescue)
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a finding is about.
///
/// No variant is called like the trait `Job`: the compiler would then show that with its whole path in
/// every message about a program that depends on this crate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum About {
    /// A job.
    OneJob(JobId),
    /// A job whose stored id is none.
    Row(String),
    /// A key within its job type.
    Key {
        /// The job type, as stored.
        job_type: String,
        /// The key, as stored.
        key: String,
    },
    /// A lease token.
    Token(LeaseToken),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneJob(id) => write!(f, "job {id}"),
            Self::Row(id) => write!(f, "job with the id {id:?}"),
            Self::Key { job_type, key } => write!(f, "key {key:?} of {job_type:?}"),
            Self::Token(token) => write!(f, "lease token {token}"),
        }
    }
}

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub invariant: Invariant,
    /// Where it is broken.
    pub about: About,
    /// What was seen there.
    pub seen: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            invariant,
            about,
            seen,
        } = self;
        write!(f, "{invariant}: {about}: {seen}")
    }
}

/// What a look through a whole store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many jobs were looked at, live and final.
    pub jobs: u64,
    /// Where stored data breaks a rule, in the order of [`Invariant::ALL`] and of what
    /// they are about.
    pub violations: Vec<Finding>,
    /// What is stored as it should be, but is not looked after.
    pub warnings: Vec<Finding>,
    /// The rules that are broken in more places than are listed.
    pub more: Vec<Invariant>,
}

impl Verified {
    /// Says whether no rule is broken; there may be warnings.
    pub fn is_sound(&self) -> bool {
        let of_violations = |invariant: &Invariant| !invariant.is_warning();
        self.violations.is_empty() && !self.more.iter().any(of_violations)
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (violations, warnings) = (self.violations.len(), self.warnings.len());
        let jobs = self.jobs;
        write!(
            f,
            "jobs checked: {jobs}, violations: {violations}, warnings: {warnings}"
        )?;
        for (what, findings) in [("violation", &self.violations), ("warning", &self.warnings)] {
            for finding in findings {
                write!(f, "\n{what}: {finding}")?;
            }
        }
        for invariant in &self.more {
            write!(f, "\nmore of {invariant} than are listed")?;
        }
        Ok(())
    }
}
