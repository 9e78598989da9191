//! What attempts came to, from their end until the store has recorded it.

use std::time::Duration;

use super::Street;
use crate::job::{Claimed, JobEvent, JobState, Outcome, Settled};
use crate::pipeline::dispatch::Ran;
use crate::pipeline::settle::{self, Pending};
use crate::rules::transition::{self, RetryPolicy, Standing};
use crate::worker::attempt::Finished;

impl Street {
    pub(super) fn attempt_ended(&mut self, first: Finished) {
        let mut next = Some(first);
        let mut ended = 0;
        while let Some(finished) = next {
            ended += 1;
            let Finished {
                claimed,
                ran,
                took,
                is_staged,
            } = finished;
            match ran {
                Ran::Success(_) => self.settle(claimed, Outcome::Success, took),
                Ran::Ended(outcome) if is_staged => self.settle_staged(claimed, outcome, took),
                Ran::Ended(outcome) => self.settle(claimed, outcome, took),
                Ran::Completed(_) => self.completed(claimed, took),
                Ran::Abandoned => {
                    let lease = claimed.lease();
                    self.claims.released(&claimed);
                    self.shared.leases.remove(lease);
                    self.shared.report(JobEvent::LeaseLost {
                        id: lease.id,
                        token: lease.token,
                    });
                }
            }
            next = self.finished.1.try_recv().ok();
        }
        self.running -= ended;
        self.claims
            .ended(ended, self.shared.backend.seam().elapsed());
    }

    /// Tells of a job that its handler has completed itself; nothing is left to settle.
    fn completed(&mut self, claimed: Claimed, took: Duration) {
        self.claims.released(&claimed);
        self.shared.leases.remove(claimed.lease());
        let completed = Pending {
            settlement: transition::complete(&Standing::from(&claimed)),
            claimed,
            took,
            is_uncertain: false,
            is_staged: true,
            times_held: 0,
        };
        self.report(&completed, Settled::Applied(JobState::Done));
    }

    /// Decides what becomes of a job and queues that for the store.
    pub(super) fn settle(&mut self, claimed: Claimed, outcome: Outcome, took: Duration) {
        let decided = self.decided(claimed, outcome, took);
        self.outbound.push(decided);
    }

    /// The same for a job that its handler may have completed itself: if the store refuses, what has
    /// become of the job is looked up.
    fn settle_staged(&mut self, claimed: Claimed, outcome: Outcome, took: Duration) {
        let decided = self.decided(claimed, outcome, took);
        self.outbound.push(Pending {
            is_uncertain: true,
            is_staged: true,
            ..decided
        });
    }

    fn decided(&self, claimed: Claimed, outcome: Outcome, took: Duration) -> Pending {
        let seam = self.shared.backend.seam();
        let limits = self.shared.config.limits;
        let backoff = match self.shared.registry.find(&claimed.job_type) {
            Some(def) => def.backoff,
            None => limits.backoff,
        };
        let settlement = transition::settle(
            &Standing::from(&claimed),
            &outcome,
            &RetryPolicy { backoff, ..limits },
            self.shared.store_time(&claimed, seam.elapsed()),
            seam.random(),
        );
        Pending {
            settlement,
            claimed,
            took,
            is_uncertain: false,
            is_staged: false,
            times_held: 0,
        }
    }

    /// Tells what has become of a result.
    pub(super) fn report(&self, pending: &Pending, answer: Settled) {
        if let Some(event) = settle::event(pending, answer, &self.shared.id) {
            self.shared.report(event);
        }
    }

    /// Puts aside what is held; returns the others with their answers.
    pub(super) fn keep_held(
        &mut self,
        batch: Vec<Pending>,
        answers: Vec<Settled>,
    ) -> Vec<(Pending, Settled)> {
        let mut recorded = Vec::with_capacity(batch.len());
        for (pending, answer) in batch.into_iter().zip(answers) {
            if answer != Settled::Held {
                recorded.push((pending, answer));
                continue;
            }
            if pending.times_held == 0 {
                tracing::warn!(
                    id = %pending.claimed.id,
                    "another transaction holds the row of a job that has ended; its result is kept \
                     and offered again until that is over"
                );
            }
            self.outbound.hold(pending);
        }
        recorded
    }
}
