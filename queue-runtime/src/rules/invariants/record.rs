//! What one job's own row shows.

use super::{Findings, OVERDUE_MAX};
use crate::job::{About, Invariant, JobRecord, JobState};
use crate::time::Timestamp;

impl Findings {
    /// Looks at a job, which stands among the live or among the final ones.
    pub fn record(&mut self, job: &JobRecord, is_live: bool, now: Timestamp) {
        self.jobs += 1;
        let mut broken = Vec::new();
        broken.extend(state(job, is_live).map(|seen| (Invariant::State, seen)));
        broken.extend(lease(job).map(|seen| (Invariant::Lease, seen)));
        broken.extend(attempts(job).map(|seen| (Invariant::Attempts, seen)));
        broken.extend(behind(job, is_live).map(|seen| (Invariant::DedupeBehind, seen)));
        broken.extend(overdue(job, now).map(|seen| (Invariant::Rescue, seen)));
        for (invariant, seen) in broken {
            self.add(invariant, About::OneJob(job.id), seen);
        }
    }
}

fn state(job: &JobRecord, is_live: bool) -> Option<String> {
    let state = job.state;
    match (is_live, job.finished_at) {
        (true, _) if state.is_final() => Some(format!("it is live and {state}")),
        (true, Some(at)) => Some(format!("it is {state} and became final at {at}")),
        (false, _) if !state.is_final() => Some(format!("it is final and {state}")),
        (false, None) => Some(format!("it is {state}, and nobody knows since when")),
        _ => None,
    }
}

fn lease(job: &JobRecord) -> Option<String> {
    let parts = [
        ("end", job.locked_until.is_some()),
        ("worker", job.locked_by.is_some()),
        ("token", job.lock_token.is_some()),
        ("start", job.started_at.is_some()),
    ];
    let named = |is_there: bool, parts: &[(&str, bool)]| {
        let parts = parts.iter().filter(|(_, there)| *there == is_there);
        let names: Vec<_> = parts.map(|(name, _)| *name).collect();
        names.join(", ")
    };
    let (is_running, said) = match job.state {
        JobState::Processing => (true, named(false, &parts)),
        // Its token and the start of its newest attempt stay with a job.
        _ => (false, named(true, &parts[..2])),
    };
    if said.is_empty() {
        return None;
    }
    Some(match is_running {
        true => format!("it is processing, and its lease has no {said}"),
        false => format!("it is {}, and has of a lease: {said}", job.state),
    })
}

fn attempts(job: &JobRecord) -> Option<String> {
    let JobRecord {
        attempts,
        max_attempts,
        state,
        ..
    } = job;
    let is_over = attempts > max_attempts;
    // Its next run would be one too many.
    let is_used_up = *state == JobState::Queued && attempts == max_attempts;
    (is_over || is_used_up)
        .then(|| format!("it is {state} with {attempts} attempts of {max_attempts}"))
}

fn behind(job: &JobRecord, is_live: bool) -> Option<String> {
    if !is_live || job.dedupe_slot == 0 {
        return None;
    }
    if job.dedupe_key.is_none() {
        return Some("it waits behind a dedupe key, and has none".to_owned());
    }
    let state = job.state;
    (state != JobState::Queued).then(|| format!("it waits behind its dedupe key, and is {state}"))
}

fn overdue(job: &JobRecord, now: Timestamp) -> Option<String> {
    let end = job
        .locked_until
        .filter(|_| job.state == JobState::Processing)?;
    (end.saturating_add(OVERDUE_MAX) <= now)
        .then(|| format!("its lease ran out at {end}, and no rescue came"))
}
