//! The verbs of a store by name, so that a test can speak about one of them.

use std::fmt;

/// One verb of [`Store`](queue_runtime::store::Store) or of the traits beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the verb of the same name")]
pub enum Verb {
    Insert,
    Claim,
    Settle,
    Exchange,
    Heartbeat,
    Extend,
    Expired,
    NextDue,
    Migrate,
    Now,
    Job,
    Finished,
    Attempts,
    Cancel,
    Replay,
    ReplayWith,
    Counts,
    Unread,
    Waiting,
    WaitingSample,
    Verify,
    Prune,
    NewestVersion,
}

impl Verb {
    /// Returns the name of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Claim => "claim",
            Self::Settle => "settle",
            Self::Exchange => "exchange",
            Self::Heartbeat => "heartbeat",
            Self::Extend => "extend",
            Self::Expired => "expired",
            Self::NextDue => "next_due",
            Self::Migrate => "migrate",
            Self::Now => "now",
            Self::Job => "job",
            Self::Finished => "finished",
            Self::Attempts => "attempts",
            Self::Cancel => "cancel",
            Self::Replay => "replay",
            Self::ReplayWith => "replay_with",
            Self::Counts => "counts",
            Self::Unread => "unread",
            Self::Waiting => "waiting",
            Self::WaitingSample => "waiting_sample",
            Self::Verify => "verify",
            Self::Prune => "prune",
            Self::NewestVersion => "newest_version",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
