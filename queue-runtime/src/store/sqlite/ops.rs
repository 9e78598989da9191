//! What the writer is asked to do, and where the answers go.

use tokio::sync::oneshot;

use super::encode::Prepared;
use crate::error::StoreError;
use crate::job::{Claimed, JobId, JobRecord, Settled, Settlement};
use crate::store::{Cancelling, ClaimRequest, Edit, Inserted, Pruned, Replaying, Retention};

/// Where the answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer is asked to do.
pub(super) enum Op {
    /// Stores jobs.
    Insert {
        jobs: Vec<Prepared>,
        reply: Reply<Vec<Inserted>>,
    },
    /// Settles, then claims; either may be missing.
    Exchange {
        settlements: Vec<Settlement>,
        request: Option<ClaimRequest>,
        operation: &'static str,
        reply: Reply<(Vec<Settled>, Vec<Claimed>)>,
    },
    /// Lists jobs whose lease has run out, and sets those aside that cannot be read.
    Expired {
        limit: usize,
        reply: Reply<Vec<JobRecord>>,
    },
    /// Calls a job off.
    Cancel { id: JobId, reply: Reply<Cancelling> },
    /// Lets a job run again, with another payload if there is an edit.
    Replay {
        id: JobId,
        as_new: bool,
        edit: Option<Edit>,
        reply: Reply<Replaying>,
    },
    /// Removes what is old.
    Prune {
        retention: Retention,
        limit: usize,
        reply: Reply<Pruned>,
    },
    /// Does nothing, but makes the writer see that somebody listens.
    Listen,
    /// Loses the connection, as a fault would.
    #[cfg(test)]
    Break,
}

/// What one operation came to.
pub(super) enum Answer {
    Inserted(Vec<Inserted>),
    Exchanged(Vec<Settled>, Vec<Claimed>),
    Expired(Vec<JobRecord>),
    Cancelled(Cancelling),
    Replayed(Replaying),
    Pruned(Pruned),
}

impl Op {
    /// The operation's name in errors.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Insert { .. } => "insert",
            Self::Exchange { operation, .. } => operation,
            Self::Expired { .. } => "expired",
            Self::Cancel { .. } => "cancel",
            Self::Replay { edit: None, .. } => "replay",
            Self::Replay { edit: Some(_), .. } => "replay_with",
            Self::Prune { .. } => "prune",
            Self::Listen => "listen",
            #[cfg(test)]
            Self::Break => "break",
        }
    }

    /// Roughly how many rows it changes.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Insert { jobs, .. } => jobs.len(),
            Self::Exchange {
                settlements,
                request,
                ..
            } => settlements.len() + request.as_ref().map_or(0, |request| request.limit),
            Self::Prune { limit, .. } | Self::Expired { limit, .. } => *limit,
            _ => 1,
        }
    }

    /// Says whether somebody still waits for the answer.
    pub(super) fn is_wanted(&self) -> bool {
        match self {
            Self::Insert { reply, .. } => !reply.is_closed(),
            Self::Exchange { reply, .. } => !reply.is_closed(),
            Self::Expired { reply, .. } => !reply.is_closed(),
            Self::Cancel { reply, .. } => !reply.is_closed(),
            Self::Replay { reply, .. } => !reply.is_closed(),
            Self::Prune { reply, .. } => !reply.is_closed(),
            Self::Listen => false,
            #[cfg(test)]
            Self::Break => false,
        }
    }

    /// Answers; a caller that is gone by now does not hear it.
    pub(super) fn answer(self, answer: Result<Answer, StoreError>) {
        match (self, answer) {
            (Self::Insert { reply, .. }, Ok(Answer::Inserted(inserted))) => {
                let _ = reply.send(Ok(inserted));
            }
            (Self::Exchange { reply, .. }, Ok(Answer::Exchanged(settled, claimed))) => {
                let _ = reply.send(Ok((settled, claimed)));
            }
            (Self::Expired { reply, .. }, Ok(Answer::Expired(expired))) => {
                let _ = reply.send(Ok(expired));
            }
            (Self::Cancel { reply, .. }, Ok(Answer::Cancelled(cancelling))) => {
                let _ = reply.send(Ok(cancelling));
            }
            (Self::Replay { reply, .. }, Ok(Answer::Replayed(replaying))) => {
                let _ = reply.send(Ok(replaying));
            }
            (Self::Prune { reply, .. }, Ok(Answer::Pruned(pruned))) => {
                let _ = reply.send(Ok(pruned));
            }
            (op, Err(error)) => op.refuse(error),
            // A mismatch drops the reply, which its caller hears as unavailable.
            (_, Ok(_)) => {}
        }
    }

    /// Answers with an error.
    pub(super) fn refuse(self, error: StoreError) {
        match self {
            Self::Insert { reply, .. } => drop(reply.send(Err(error))),
            Self::Exchange { reply, .. } => drop(reply.send(Err(error))),
            Self::Expired { reply, .. } => drop(reply.send(Err(error))),
            Self::Cancel { reply, .. } => drop(reply.send(Err(error))),
            Self::Replay { reply, .. } => drop(reply.send(Err(error))),
            Self::Prune { reply, .. } => drop(reply.send(Err(error))),
            Self::Listen => {}
            #[cfg(test)]
            Self::Break => {}
        }
    }
}
