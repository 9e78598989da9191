//! Collects what attempts came to, and hands it to the store in batches.
//!
//! Outcomes come in; settlements go out, as many at once as have gathered while the last batch
//! was on its way. A change is applied only under the lease token of its own claim; a stale
//! token is a normal reply. A store error while recording a result is never a job's outcome: the
//! settlement is kept and offered again. That is safe however late it is: if the lease has run
//! out and a rescue was faster, the store answers stale.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::StoreError;
use crate::job::{Claimed, JobEvent, JobState, Lease, OutcomeKind, Settled, Settlement, WorkerId};
use crate::store::Store;

/// The most settlements in one batch, so that one transaction stays short.
const BATCH_MAX: usize = 500;

/// A decided settlement with what its event will say.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) settlement: Settlement,
    pub(crate) claimed: Claimed,
    pub(crate) took: Duration,
    /// Whether it was offered before and nobody knows what came of that.
    pub(crate) is_uncertain: bool,
    /// Whether the handler may have completed the job in a transaction of its own.
    pub(crate) is_staged: bool,
}

/// The settlements that wait to be recorded, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    waiting: VecDeque<Pending>,
}

impl Outbound {
    pub(crate) fn push(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the next batch.
    pub(crate) fn take_batch(&mut self) -> Vec<Pending> {
        let count = self.waiting.len().min(BATCH_MAX);
        self.waiting.drain(..count).collect()
    }

    /// Takes a batch back that the store could not record, ahead of newer ones.
    pub(crate) fn put_back(&mut self, batch: Vec<Pending>) {
        batch.into_iter().rev().for_each(|pending| {
            let is_uncertain = true;
            self.waiting.push_front(Pending {
                is_uncertain,
                ..pending
            });
        });
    }
}

/// Finds out what came of a settlement that was offered twice and is stale now: the first offer
/// may have been applied and its answer lost, which the attempt's history tells.
pub(crate) async fn resolve(pending: &Pending, store: &dyn Store) -> Result<Settled, StoreError> {
    let Settlement { id, outcome, .. } = &pending.settlement;
    let recorded = recorded(pending.settlement.lease(), store).await?;
    if pending.is_staged && recorded == Some(OutcomeKind::Success) {
        return Ok(Settled::Applied(JobState::Done));
    }
    if recorded != Some(*outcome) {
        return Ok(Settled::Stale);
    }
    let state = pending.settlement.change.state();
    Ok(match store.job(*id).await? {
        // A pending cancel may have overruled the change; a later claim says nothing about it.
        Some(job) if job.state.is_final() => Settled::Applied(job.state),
        _ => Settled::Applied(state),
    })
}

/// Reads back how an attempt has ended; `None` if it runs, or nothing is known of it.
pub(crate) async fn recorded(
    lease: Lease,
    store: &dyn Store,
) -> Result<Option<OutcomeKind>, StoreError> {
    let attempts = store.attempts(lease.id).await?;
    let found = attempts.iter().find(|attempt| attempt.token == lease.token);
    Ok(found.and_then(|attempt| attempt.outcome))
}

/// Says what happened to a settlement that the store answered.
pub(crate) fn event(pending: &Pending, answer: Settled, worker: &WorkerId) -> JobEvent {
    let (settlement, claimed) = (&pending.settlement, &pending.claimed);
    match answer {
        Settled::Stale => JobEvent::SettledStale {
            id: settlement.id,
            token: settlement.token,
        },
        Settled::Applied(state) => JobEvent::Settled {
            id: settlement.id,
            job_type: claimed.job_type.clone(),
            queue: claimed.queue.clone(),
            token: settlement.token,
            worker: worker.clone(),
            attempt: claimed.attempt,
            max_attempts: claimed.max_attempts,
            result: settlement.result(state),
            state,
            // What a staged completion would have failed with is void once it is committed.
            error: settlement.error.clone().filter(|_| state != JobState::Done),
            idempotency_key: claimed.idempotency_key.clone(),
            waited: claimed.waited(),
            took: pending.took,
        },
    }
}
