//! Says what of a history breaks an invariant. A function of values: it asks nobody.

mod requests;
mod effects;
mod attempts;
#[cfg(test)]
mod tests;

use std::fmt;

use queue_runtime::JobId;

use crate::history::History;

/// What must hold whatever was done to the processes; the table of the crate says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Accepted jobs are in the store, in one state each, at every sample.
    I1,
    /// A done job had its effect, a transactional one exactly once; none is missing.
    I2,
    /// A second effect only where a lease was lost, of a process that was interrupted.
    I3,
    /// No way out of a final state; one end for each job, which is the one of its kind.
    I4,
    /// What is written about a running job carries its token.
    I5,
    /// One lease for each job at a time.
    I6,
    /// Attempts and crashes within their budgets, and all counted.
    I7,
    /// One live job for each dedupe key; one job for each request.
    I8,
    /// All that is due is final soon after the last fault.
    I14,
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// The job that shows it, if it is about one.
    pub job: Option<JobId>,
    /// What is wrong.
    pub said: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.said)
    }
}

/// What is found, piece by piece.
#[derive(Default)]
pub(crate) struct Found(Vec<Violation>);

impl Found {
    /// Notes a violation unless the condition holds.
    fn unless(
        &mut self,
        holds: bool,
        invariant: Invariant,
        job: Option<JobId>,
        said: impl FnOnce() -> String,
    ) {
        if !holds {
            self.0.push(Violation {
                invariant,
                job,
                said: said(),
            });
        }
    }
}

/// Evaluates every invariant over a world at rest.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Found::default();
    requests::check(history, &mut found);
    for (id, seen) in &history.jobs {
        effects::check(history, *id, seen, &mut found);
        attempts::check(history, *id, seen, &mut found);
    }
    if let Some((took, may)) = history.drained {
        found.unless(took <= may, Invariant::I14, None, || {
            format!("everything was final {took:?} after the last fault, and not within {may:?}")
        });
    }
    found.0
}
