//! Remembers which lanes have waiting jobs, and from which key on.
//!
//! Finding the lanes walks over the dead entries at the head of each, of which there are many
//! while somebody holds an old snapshot. So a claim that was filled goes on from where it ended,
//! until a moment has passed, something in this process may have put a job before that place, or
//! a claim comes back short. What other processes add before it is seen after that moment.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::claim::Asked;
use super::rows::Lane;
use crate::job::Claimed;

/// How long lanes are remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// The most jobs that a claim chooses beyond what it takes.
const SPARE_MAX: usize = 1_000;

/// A filled claim gives up one in so many of those.
const SPARE_PARTS: usize = 16;

/// What one store remembers between its claims.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: Option<Known>,
    /// Counts what may have put a job before a remembered place.
    changes: u64,
    /// How many jobs to choose beyond what is taken.
    spare: usize,
}

#[derive(Debug)]
struct Known {
    asked: Asked,
    lanes: Vec<Lane>,
    found_at: Duration,
}

impl Lanes {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lanes of a request out, if they are remembered; and the ticket that
    /// [`remember`](Self::remember) asks for.
    pub(super) fn recall(&self, asked: &Asked, now: Duration) -> (Option<Vec<Lane>>, Ticket) {
        let mut state = self.state();
        let known = state.known.take();
        let fresh = known.filter(|known| {
            known.asked.is_same(asked) && now.saturating_sub(known.found_at) < REMEMBERED_FOR
        });
        let ticket = Ticket {
            changes: state.changes,
            found_at: fresh.as_ref().map_or(now, |known| known.found_at),
            spare: state.spare,
        };
        (fresh.map(|known| known.lanes), ticket)
    }

    /// Remembers lanes after a claim that was filled, unless something has changed meanwhile.
    pub(super) fn remember(&self, ticket: Ticket, asked: Asked, lanes: Vec<Lane>) {
        let mut state = self.state();
        if state.changes == ticket.changes {
            state.known = Some(Known {
                asked,
                lanes,
                found_at: ticket.found_at,
            });
        }
    }

    /// Forgets the lanes: a job may have come to stand before a remembered place.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        state.changes = state.changes.wrapping_add(1);
        state.known = None;
    }

    /// Chooses more beyond the limit after a claim that others left short, and a little fewer after
    /// each that was filled: to choose some in vain costs less than to come back short again.
    pub(super) fn adapt(&self, wanted: usize, took: usize) {
        let mut state = self.state();
        state.spare = if took < wanted {
            (state.spare * 2).max(wanted).min(SPARE_MAX)
        } else {
            state
                .spare
                .saturating_sub((state.spare / SPARE_PARTS).max(1))
        };
    }
}

/// What a claim was told when it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    changes: u64,
    found_at: Duration,
    pub(super) spare: usize,
}

/// Moves the lanes on to behind the jobs that were taken.
pub(super) fn advance(lanes: &mut [Lane], taken: &[(&Claimed, i16)]) {
    for lane in lanes {
        let last = taken
            .iter()
            .filter(|(job, priority)| {
                *priority == lane.priority
                    && i64::from(job.crashes) == lane.crashes
                    && i64::from(job.payload_schema) == lane.payload_schema
                    && job.queue.as_str() == lane.queue
                    && job.job_type.as_str() == lane.job_type
            })
            .map(|(job, _)| (job.run_at, job.id))
            .max();
        if let Some((run_at, id)) = last {
            lane.run_at = run_at;
            lane.id = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(queue: &str) -> Asked {
        Asked {
            queues: vec![queue.to_owned()],
            job_types: vec!["send_welcome".to_owned()],
            schemas: vec![1],
        }
    }

    #[test]
    fn lanes_are_remembered_for_a_moment_and_for_the_same_request_only() {
        let lanes = Lanes::default();
        let at = Duration::from_secs(10);
        let (none, ticket) = lanes.recall(&asked("mail"), at);
        assert_eq!(none, None);

        lanes.remember(ticket, asked("mail"), Vec::new());
        assert_eq!(lanes.recall(&asked("default"), at).0, None);

        lanes.remember(ticket, asked("mail"), Vec::new());
        let (found, ticket) = lanes.recall(&asked("mail"), at + REMEMBERED_FOR / 2);
        assert_eq!(found, Some(Vec::new()));

        // Used again, they still end a moment after they were found.
        lanes.remember(ticket, asked("mail"), Vec::new());
        assert_eq!(lanes.recall(&asked("mail"), at + REMEMBERED_FOR).0, None);
    }

    #[test]
    fn a_change_during_a_claim_leaves_nothing_remembered() {
        let lanes = Lanes::default();
        let (_, ticket) = lanes.recall(&asked("mail"), Duration::ZERO);
        lanes.forget();
        lanes.remember(ticket, asked("mail"), Vec::new());
        assert_eq!(lanes.recall(&asked("mail"), Duration::ZERO).0, None);
    }

    #[test]
    fn the_spare_grows_while_claims_come_back_short_and_shrinks_again() {
        let lanes = Lanes::default();
        let spare = || lanes.recall(&asked("mail"), Duration::ZERO).1.spare;
        lanes.adapt(50, 20);
        assert_eq!(spare(), 50);
        lanes.adapt(50, 20);
        assert_eq!(spare(), 100);
        for _ in 0..9 {
            lanes.adapt(50, 20);
        }
        assert_eq!(spare(), SPARE_MAX);
        lanes.adapt(50, 50);
        assert_eq!(spare(), SPARE_MAX - SPARE_MAX / SPARE_PARTS);
        for _ in 0..100 {
            lanes.adapt(50, 50);
        }
        assert_eq!(spare(), 0);
    }
}
