//! Reads the store and the ledgers of a world into its history, through what everybody can call.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use queue_runtime::{JobId, JobRecord, JobState, Queue};
use tokio::time::{Instant, interval};

use crate::history::{History, Record, Seen};
use crate::ledger;
use crate::rig::Rig;

/// Jobs of one page.
const PAGE: usize = 1_000;

/// Questions to the store at the same time.
const AT_ONCE: usize = 6;

/// Between two looks at the store.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// What the checker wants to know of a job.
pub fn record(job: &JobRecord) -> Record {
    Record {
        state: job.state,
        attempts: job.attempts,
        attempts_max: job.max_attempts,
        crashes: job.crashes,
        token: job.lock_token.map(|token| token.get()),
        dedupe_key: job.dedupe_key.clone(),
        started_at: job.started_at,
        finished_at: job.finished_at,
    }
}

/// Waits until no job is live, at most so long; says whether that came.
///
/// # Errors
/// The store's.
pub async fn at_rest(queue: &Queue, within: Duration) -> Result<bool> {
    let mut looks = interval(LOOK_AGAIN);
    let end = Instant::now() + within;
    loop {
        looks.tick().await;
        match queue.counts().await {
            Ok(counts) => {
                if counts.of(JobState::Queued) + counts.of(JobState::Processing) == 0 {
                    return Ok(true);
                }
            }
            // A busy server is asked again.
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
        if Instant::now() > end {
            return Ok(false);
        }
    }
}

/// Reads a world.
///
/// # Errors
/// If the store or a ledger cannot be read.
pub async fn history(rig: &Rig, queue: &Queue) -> Result<History> {
    if let Some(damage) = rig.place.damage(queue).await? {
        anyhow::bail!("the file is damaged: {damage}");
    }
    let verified = queue.verify().await?;
    anyhow::ensure!(
        verified.is_sound(),
        "what is stored breaks its own rules: {verified}"
    );
    let mut history = History {
        interrupted: rig.interrupted().clone(),
        crashes_max: u32::MAX,
        counted: queue.counts().await?.total(),
        ..History::default()
    };
    history.add_lines(ledger::read(rig.folder())?);
    for (job, token) in rig.place.booked(queue).await? {
        history.jobs.entry(job).or_default().booked.push(token);
    }
    for state in JobState::ALL.into_iter().filter(|state| state.is_final()) {
        let mut before = None;
        loop {
            let page = queue.store().finished(state, before, PAGE).await?;
            for job in &page {
                history.jobs.entry(job.id).or_default().record = Some(record(job));
            }
            let Some(last) = page.last().filter(|_| page.len() == PAGE) else {
                break;
            };
            before = last.finished_at.map(|at| (at, last.id));
        }
    }
    let live: BTreeSet<JobId> = history
        .jobs
        .iter()
        .filter(|(_, seen)| seen.record.is_none())
        .map(|(id, _)| *id)
        .collect();
    let found =
        stream::iter(live).map(async |id| Ok::<_, anyhow::Error>((id, queue.job(id).await?)));
    let found: Vec<_> = found.buffer_unordered(AT_ONCE).try_collect().await?;
    for (id, job) in found {
        history.jobs.entry(id).or_default().record = job.as_ref().map(record);
    }
    let asked: Vec<JobId> = history
        .jobs
        .iter()
        .filter(|(_, seen)| !is_plain(seen))
        .map(|(id, _)| *id)
        .collect();
    let found =
        stream::iter(asked).map(async |id| Ok::<_, anyhow::Error>((id, queue.attempts(id).await?)));
    let found: Vec<_> = found.buffer_unordered(AT_ONCE).try_collect().await?;
    for (id, attempts) in found {
        history.jobs.entry(id).or_default().attempts = Some(attempts);
    }
    Ok(history)
}

/// Whether the record and the ledger of a job agree on one attempt, in which all happened: then its
/// attempts say nothing more.
fn is_plain(seen: &Seen) -> bool {
    let Some(record) = &seen.record else {
        return false;
    };
    let (mut starts, mut effects) = (seen.starts(), seen.effects());
    let (Some((_, start)), Some((_, effect))) = (starts.next(), effects.next()) else {
        return false;
    };
    let is_one = starts.next().is_none() && effects.next().is_none();
    is_one
        && start == effect
        && Some(start.token) == record.token
        && (record.attempts, start.attempt) == (1, 1)
        && record.crashes == 0
        && record.state == JobState::Done
}
