//! Collects what attempts came to, and hands it to the store in batches.
//!
//! Outcomes come in; settlements go out, as many at once as have gathered while the last batch
//! was on its way. A change is applied only under the lease token of its own claim; a stale
//! token is a normal reply. A store error while recording a result is never a job's outcome: the
//! settlement is kept and offered again. That is safe however late it is: if the lease has run
//! out and a rescue was faster, the store answers stale. One whose row somebody else's transaction
//! holds is offered again apart from the others, so that it never holds them up.

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
    /// How often it was put off because somebody else's transaction held the job's row.
    pub(crate) times_held: u32,
}

/// The settlements that wait to be recorded, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    waiting: VecDeque<Pending>,
    /// Those whose rows somebody else's transaction holds.
    held: VecDeque<Pending>,
}

impl Outbound {
    pub(crate) fn push(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty()
    }

    /// How many wait for the next batches; without those that are held.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many the store has yet to take.
    pub(crate) fn unrecorded(&self) -> usize {
        self.waiting.len() + self.held.len()
    }

    /// Takes the next batch.
    pub(crate) fn take_batch(&mut self) -> Vec<Pending> {
        let count = self.waiting.len().min(BATCH_MAX);
        self.waiting.drain(..count).collect()
    }

    /// Takes the next batch of those that are held.
    pub(crate) fn take_held(&mut self) -> Vec<Pending> {
        let count = self.held.len().min(BATCH_MAX);
        self.held.drain(..count).collect()
    }

    /// Puts one aside whose row somebody else's transaction holds.
    pub(crate) fn hold(&mut self, pending: Pending) {
        let times_held = pending.times_held.saturating_add(1);
        self.held.push_back(Pending {
            times_held,
            ..pending
        });
    }

    /// How often the one was put off that was so the least; `None` if none is held.
    pub(crate) fn times_held(&self) -> Option<u32> {
        self.held.iter().map(|pending| pending.times_held).min()
    }

    /// Takes a batch back that the store could not record, ahead of newer ones. What was held
    /// stays apart.
    pub(crate) fn put_back(&mut self, batch: Vec<Pending>) {
        for pending in batch.into_iter().rev() {
            let line = match pending.times_held {
                0 => &mut self.waiting,
                _ => &mut self.held,
            };
            line.push_front(Pending {
                is_uncertain: true,
                ..pending
            });
        }
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

/// Says what happened to a settlement that the store answered; nothing has to one that is held.
pub(crate) fn event(pending: &Pending, answer: Settled, worker: &WorkerId) -> Option<JobEvent> {
    let (settlement, claimed) = (&pending.settlement, &pending.claimed);
    match answer {
        Settled::Held => None,
        Settled::Stale => Some(JobEvent::SettledStale {
            id: settlement.id,
            token: settlement.token,
        }),
        Settled::Applied(state) => Some(JobEvent::Settled {
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
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Change, JobId, JobType, LeaseToken, QueueName};
    use crate::time::Timestamp;

    fn pending(token: i64) -> Pending {
        let id = JobId::from_uuid(uuid::Uuid::from_u128(7));
        let claimed = Claimed {
            id,
            claimed_at: Timestamp::EPOCH,
            job_type: JobType::new("mail").expect("a name"),
            queue: QueueName::default_queue(),
            payload: "{}".to_owned(),
            payload_schema: 1,
            attempt: 1,
            max_attempts: 5,
            crashes: 0,
            snoozes: 0,
            generation: 0,
            token: LeaseToken::new(token),
            locked_until: Timestamp::EPOCH,
            run_at: Timestamp::EPOCH,
            cancel_requested: false,
            idempotency_key: None,
            cache: None,
            deadline: None,
            trace_context: None,
            created_at: Timestamp::EPOCH,
        };
        let settlement = Settlement {
            id,
            token: claimed.token,
            change: Change::Done,
            outcome: OutcomeKind::Success,
            error: None,
            attempts: 1,
            crashes: 0,
            snoozes: 0,
            only_if_expired: false,
        };
        Pending {
            settlement,
            claimed,
            took: Duration::ZERO,
            is_uncertain: false,
            is_staged: false,
            times_held: 0,
        }
    }

    fn tokens(batch: &[Pending]) -> Vec<i64> {
        batch.iter().map(|p| p.settlement.token.get()).collect()
    }

    #[test]
    fn what_is_held_waits_apart() {
        let mut outbound = Outbound::default();
        outbound.push(pending(1));
        outbound.hold(pending(2));
        assert_eq!((outbound.len(), outbound.unrecorded()), (1, 2));
        assert_eq!(tokens(&outbound.take_batch()), [1]);
        assert!(!outbound.is_empty());
        let held = outbound.take_held();
        assert_eq!(tokens(&held), [2]);
        assert_eq!(held[0].times_held, 1);
        assert!(outbound.is_empty());
    }

    #[test]
    fn what_is_held_stays_apart_when_the_store_fails() {
        let mut outbound = Outbound::default();
        outbound.hold(pending(1));
        outbound.hold(pending(2));
        let held = outbound.take_held();
        outbound.push(pending(4));
        outbound.put_back(vec![pending(3)]);
        outbound.put_back(held);
        let (batch, held) = (outbound.take_batch(), outbound.take_held());
        assert_eq!((tokens(&batch), tokens(&held)), (vec![3, 4], vec![1, 2]));
        assert!(batch[0].is_uncertain && held[0].is_uncertain);
        assert!(!batch[1].is_uncertain);
    }

    #[test]
    fn a_newcomer_among_the_held_is_offered_as_soon_as_one() {
        let mut outbound = Outbound::default();
        assert_eq!(outbound.times_held(), None);
        outbound.hold(Pending {
            times_held: 6,
            ..pending(1)
        });
        assert_eq!(outbound.times_held(), Some(7));
        outbound.hold(pending(2));
        assert_eq!(outbound.times_held(), Some(1));
    }
}
