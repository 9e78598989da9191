//! What became of requests: I1, I8, and of I2 that no accepted job is missing.

use std::collections::{BTreeMap, BTreeSet};

use queue_runtime::JobId;

use super::{Found, Invariant};
use crate::history::{History, Record, Sample};

pub(super) fn check(history: &History, found: &mut Found) {
    sums(history, found);
    answers(history, found);
    keys(history, found);
}

/// The store counts what producers were told of, and nothing that nobody asked for.
fn sums(history: &History, found: &mut Found) {
    for sample in &history.samples {
        let Sample {
            told,
            counted,
            asked,
        } = *sample;
        found.unless(
            (told..=asked).contains(&counted),
            Invariant::I1,
            None,
            || format!("{counted} jobs were counted, of {told} accepted and {asked} asked for"),
        );
    }
    let stored = history.jobs.values().filter(|seen| seen.record.is_some());
    let (stored, counted) = (stored.count() as u64, history.counted);
    found.unless(stored == counted, Invariant::I1, None, || {
        format!(
            "{counted} jobs are counted at rest, and {stored} of those that are known are there"
        )
    });
}

fn answers(history: &History, found: &mut Found) {
    for (n, request) in &history.requests {
        let jobs: BTreeSet<JobId> = request.accepted.iter().map(|(job, _)| *job).collect();
        for job in jobs.difference(&history.pruned) {
            let is_there = history
                .jobs
                .get(job)
                .is_some_and(|seen| seen.record.is_some());
            found.unless(is_there, Invariant::I2, Some(*job), || {
                format!("request {n} was accepted as job {job}, which is not there")
            });
        }
        found.unless(
            jobs.len() <= 1,
            Invariant::I8,
            jobs.first().copied(),
            || format!("request {n} has {} jobs", jobs.len()),
        );
        // Whoever asks again is told that the job existed, whichever process was the first.
        let is_told = request.accepted.len() <= 1 || request.accepted.iter().any(|(_, old)| *old);
        found.unless(is_told, Invariant::I8, jobs.first().copied(), || {
            format!("request {n} was made twice and answered as new twice: its key was forgotten")
        });
        found.unless(
            !request.is_refused || jobs.is_empty(),
            Invariant::I2,
            jobs.first().copied(),
            || format!("request {n} was refused and has a job"),
        );
    }
}

/// Jobs of one key never lived at the same time, as far as their attempts tell.
fn keys(history: &History, found: &mut Found) {
    let mut of_key: BTreeMap<&str, Vec<(JobId, &Record)>> = BTreeMap::new();
    for (id, seen) in &history.jobs {
        if let Some(record) = &seen.record
            && let Some(key) = &record.dedupe_key
        {
            of_key.entry(key).or_default().push((*id, record));
        }
    }
    for (key, mut jobs) in of_key {
        let live = jobs.iter().filter(|(_, record)| !record.state.is_final());
        let live = live.count();
        found.unless(live <= 1, Invariant::I8, None, || {
            format!("{live} live jobs have the dedupe key {key:?}")
        });
        jobs.sort_by_key(|(id, record)| (record.started_at, *id));
        for pair in jobs.windows(2) {
            let ((first, before), (second, after)) = (pair[0], pair[1]);
            let is_apart = match (before.finished_at, after.started_at) {
                (Some(end), Some(start)) => end <= start,
                _ => true,
            };
            found.unless(is_apart, Invariant::I8, Some(second), || {
                format!("job {second} of the dedupe key {key:?} started before {first} had ended")
            });
        }
    }
}
