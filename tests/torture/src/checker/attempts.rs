//! What the store keeps of a job's attempts: I4 to I7.

use std::collections::BTreeSet;

use queue_runtime::JobId;
use queue_runtime::job::{Attempt, OutcomeKind};

use super::{Found, Invariant};
use crate::history::{History, Record, Seen};
use crate::ledger::Entry;

pub(super) fn check(history: &History, id: JobId, seen: &Seen, found: &mut Found) {
    let Some(record) = &seen.record else { return };
    ends(id, seen, record, found);
    budgets(history, id, record, found);
    if let Some(attempts) = &seen.attempts {
        line_up(id, record, attempts, found);
        counted(id, record, attempts, found);
        refusals(id, seen, attempts, found);
    }
}

/// It ended once, as its kind does, and stayed as it was.
fn ends(id: JobId, seen: &Seen, record: &Record, found: &mut Found) {
    let job = Some(id);
    if let Some(kind) = seen.kind {
        found.unless(record.state == kind.end(), Invariant::I4, job, || {
            format!(
                "job {id} is {}, and jobs of its kind end {}",
                record.state,
                kind.end()
            )
        });
    }
    if let Some(early) = &seen.was_final {
        found.unless(early == record, Invariant::I4, job, || {
            format!("job {id} was {} and did not stay as it was", early.state)
        });
    }
    let told: Vec<i64> = seen
        .lines
        .iter()
        .filter_map(|(_, entry)| match entry {
            Entry::Final(_, token, _) => Some(*token),
            _ => None,
        })
        .collect();
    found.unless(told.len() <= 1, Invariant::I4, job, || {
        format!(
            "job {id} was told to have ended {} times, by tokens {told:?}",
            told.len()
        )
    });
}

fn budgets(history: &History, id: JobId, record: &Record, found: &mut Found) {
    let Record {
        attempts,
        attempts_max,
        crashes,
        ..
    } = *record;
    found.unless(attempts <= attempts_max, Invariant::I7, Some(id), || {
        format!("job {id} has {attempts} attempts of at most {attempts_max}")
    });
    let most = history.crashes_max;
    found.unless(crashes <= most, Invariant::I7, Some(id), || {
        format!("job {id} has {crashes} crashes of at most {most}")
    });
}

/// One after the other, each under a higher token than the one before, the last one the job's.
fn line_up(id: JobId, record: &Record, attempts: &[Attempt], found: &mut Found) {
    let job = Some(id);
    let rise = attempts.is_sorted_by(|a, b| a.token < b.token);
    found.unless(rise, Invariant::I5, job, || {
        format!("the lease tokens of job {id} do not rise")
    });
    let last = attempts.last().map(|attempt| attempt.token.get());
    found.unless(last == record.token, Invariant::I5, job, || {
        format!(
            "job {id} has the token {:?}, its last attempt {last:?}",
            record.token
        )
    });
    for pair in attempts.windows(2) {
        let is_over = pair[0]
            .finished_at
            .is_some_and(|end| end <= pair[1].started_at);
        found.unless(is_over, Invariant::I6, job, || {
            let (first, second) = (pair[0].token, pair[1].token);
            format!("job {id} was under the leases {first} and {second} at once")
        });
    }
    if let Some((last, before)) = attempts.split_last() {
        for attempt in before.iter().filter(|attempt| ends_a_job(attempt.outcome)) {
            found.unless(false, Invariant::I4, job, || {
                format!(
                    "job {id} went on after its end with token {}",
                    attempt.token
                )
            });
        }
        found.unless(
            !record.state.is_final() || last.outcome.is_some(),
            Invariant::I4,
            job,
            || format!("job {id} is {} and its last attempt is open", record.state),
        );
    }
}

fn ends_a_job(outcome: Option<OutcomeKind>) -> bool {
    use OutcomeKind::{Cancelled, DeadlinePassed, Permanent, Success, Superseded, Undecodable};
    let ends = [
        Success,
        Superseded,
        Permanent,
        Undecodable,
        DeadlinePassed,
        Cancelled,
    ];
    outcome.is_some_and(|outcome| ends.contains(&outcome))
}

/// Every attempt is counted but those that were given back, and every crash in a row.
fn counted(id: JobId, record: &Record, attempts: &[Attempt], found: &mut Found) {
    use OutcomeKind::{DeadlinePassed, HandedBack, Lost, Snooze, Superseded};
    let job = Some(id);
    let free = [HandedBack, Snooze, Superseded, DeadlinePassed].map(Some);
    let due = attempts
        .iter()
        .filter(|attempt| !free.contains(&attempt.outcome));
    let (due, counted) = (due.count() as u32, record.attempts);
    found.unless(due == counted, Invariant::I7, job, || {
        format!("job {id} counts {counted} attempts and had {due}")
    });
    // A hand-back says nothing about the job and leaves the crashes; what a living worker says
    // sets them back.
    let mut in_a_row = 0;
    for attempt in attempts {
        in_a_row = match attempt.outcome {
            Some(Lost) => in_a_row + 1,
            Some(HandedBack) | None => in_a_row,
            Some(_) => 0,
        };
    }
    let crashes = record.crashes;
    found.unless(crashes == in_a_row, Invariant::I7, job, || {
        format!("job {id} counts {crashes} crashes and had {in_a_row} in a row")
    });
}

/// What the store refused about an attempt, it has not applied.
fn refusals(id: JobId, seen: &Seen, attempts: &[Attempt], found: &mut Found) {
    let refused: BTreeSet<i64> = seen
        .lines
        .iter()
        .filter_map(|(_, entry)| match entry {
            Entry::Lost(_, token) => Some(*token),
            _ => None,
        })
        .collect();
    for attempt in attempts.iter().filter(|a| refused.contains(&a.token.get())) {
        let applied = attempt
            .outcome
            .filter(|outcome| *outcome != OutcomeKind::Lost);
        found.unless(applied.is_none(), Invariant::I5, Some(id), || {
            let token = attempt.token;
            format!("token {token} of job {id} was refused, and came to {applied:?} all the same")
        });
    }
}
