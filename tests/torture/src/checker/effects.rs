//! What jobs did: I2 and I3, and of I5 that an effect is of an attempt that the store knows.

use std::collections::BTreeSet;

use queue_runtime::job::OutcomeKind;
use queue_runtime::{JobId, JobState};

use super::{Found, Invariant};
use crate::history::{History, Seen};
use crate::jobs::Kind;
use crate::ledger::Run;

pub(super) fn check(history: &History, id: JobId, seen: &Seen, found: &mut Found) {
    let job = Some(id);
    let Some(record) = &seen.record else {
        let ran = seen.starts().count() + seen.booked.len();
        let is_pruned = history.pruned.contains(&id);
        found.unless(ran == 0 || is_pruned, Invariant::I1, job, || {
            format!("job {id} ran {ran} times and is not in the store")
        });
        return;
    };
    let effects: Vec<(&str, Run)> = seen.effects().collect();
    let is_booked = seen.kind == Some(Kind::Booked);
    let taken = effects.len() + seen.booked.len();
    if record.state == JobState::Done {
        let has_effect = seen.kind.is_none_or(Kind::has_effect);
        found.unless(taken > 0 || !has_effect, Invariant::I2, job, || {
            format!("job {id} is done and had no effect")
        });
    }
    found.unless(!is_booked || taken <= 1, Invariant::I2, job, || {
        format!("job {id} took its transactional effect {taken} times")
    });
    found.unless(
        seen.booked.is_empty() || record.state == JobState::Done,
        Invariant::I2,
        job,
        || {
            format!(
                "job {id} has its transactional effect and is {}",
                record.state
            )
        },
    );

    let tokens: BTreeSet<i64> = effects.iter().map(|(_, run)| run.token).collect();
    found.unless(tokens.len() == effects.len(), Invariant::I3, job, || {
        format!("job {id} took its effect twice in one attempt")
    });
    of_known_attempts(id, seen, found);
    repeats(history, id, seen, &effects, found);
}

/// Every run is of an attempt that the store has, under its number.
fn of_known_attempts(id: JobId, seen: &Seen, found: &mut Found) {
    let runs = seen.starts().chain(seen.effects());
    for (boot, run) in runs {
        let is_known = match &seen.attempts {
            None => seen.record.as_ref().and_then(|record| record.token) == Some(run.token),
            Some(attempts) => attempts
                .iter()
                .any(|known| known.token.get() == run.token && known.number == run.attempt),
        };
        found.unless(is_known, Invariant::I5, Some(id), || {
            let Run { attempt, token, .. } = run;
            format!("{boot} ran attempt {attempt} of job {id} with token {token}: the store has no such attempt")
        });
    }
}

/// An effect before the last one is of an attempt whose lease was lost. And a lease is lost only by
/// a process that somebody interrupted.
fn repeats(history: &History, id: JobId, seen: &Seen, effects: &[(&str, Run)], found: &mut Found) {
    let job = Some(id);
    let attempts = seen.attempts.as_deref().unwrap_or_default();
    let last = effects.iter().map(|(_, run)| run.token).max();
    for (boot, run) in effects.iter().filter(|(_, run)| Some(run.token) != last) {
        let outcome = attempts
            .iter()
            .find(|attempt| attempt.token.get() == run.token)
            .and_then(|attempt| attempt.outcome);
        let may = [OutcomeKind::Lost, OutcomeKind::HandedBack].map(Some);
        found.unless(may.contains(&outcome), Invariant::I3, job, || {
            let token = run.token;
            format!("job {id} took its effect again after that of token {token} in {boot}, which came to {outcome:?}")
        });
    }
    for attempt in attempts
        .iter()
        .filter(|attempt| attempt.outcome == Some(OutcomeKind::Lost))
    {
        let worker = attempt.worker.as_str();
        let boot = worker.split('@').next().unwrap_or(worker);
        found.unless(
            history.interrupted.contains(boot),
            Invariant::I3,
            job,
            || {
                format!(
                    "{boot} lost the lease {} of job {id}, and nobody interrupted it",
                    attempt.token
                )
            },
        );
    }
}
