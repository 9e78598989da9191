//! What must hold after a deploy: read from the store and from the ledger of what ran.

use std::collections::BTreeMap;

use queue_runtime::job::{Attempt, OutcomeKind};
use queue_runtime::{JobRecord, JobState, Queue};

use crate::fleet::Run;
use crate::{AFTER, BEFORE};

/// More than there are jobs.
const MANY: usize = 10_000;

/// The types that wait and that the workers of a release do not know, with their numbers.
pub(crate) async fn unknown(queue: &Queue, release: &str) -> Vec<(String, u64)> {
    let known: &[&str] = match release {
        BEFORE => &["send_invoice", "sync_stock", "old_report", "digest"],
        _ => &[
            "send_invoice",
            "sync_stock",
            "new_report",
            "send_digest",
            "digest",
        ],
    };
    let waiting = queue.waiting().await.expect("the store answers");
    let unknown = waiting.into_iter().filter(|row| {
        let is_known = known.contains(&row.job_type.as_str());
        row.queued > 0 && !is_known
    });
    unknown
        .map(|row| (row.job_type.to_string(), row.queued))
        .collect()
}

/// Everything that was accepted is done by one run. No lease was lost, and no worker has touched what
/// its release does not know.
pub(crate) async fn check(queue: &Queue, ledger: Vec<Run>, accepted: u64) {
    let counts = queue.counts().await.expect("the store answers");
    assert_eq!((counts.done, counts.total()), (accepted, accepted));
    let verified = queue.verify().await.expect("the store answers");
    assert!(verified.is_sound(), "{verified}");

    let mut runs: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    for run in ledger {
        runs.entry(run.id.clone()).or_default().push(run);
    }
    let done = queue.store().finished(JobState::Done, None, MANY).await;
    let done = done.expect("the store answers");
    assert_eq!(done.len() as u64, accepted);
    let (mut old_by_new, mut new_by_old) = (0, 0);
    for job in &done {
        let runs = runs.remove(&job.id.to_string()).unwrap_or_default();
        let release = one_run(queue, job, &runs).await;
        let stored_by = match job.payload.contains("warehouse") || is_new(job) {
            true => AFTER,
            false => BEFORE,
        };
        old_by_new += u32::from(stored_by == BEFORE && release == AFTER);
        new_by_old += u32::from(stored_by == AFTER && release == BEFORE);
    }
    assert!(runs.is_empty(), "ran, and nobody was told of it: {runs:?}");
    // Of the last producer of each release while only the other release worked.
    assert!(old_by_new >= 60, "{old_by_new} old jobs by new workers");
    assert!(new_by_old >= 20, "{new_by_old} new jobs by old workers");
}

/// Follows a job through its attempts and returns the release that ran it. Workers that were told to
/// stop may have handed it back before that, unstarted.
async fn one_run(queue: &Queue, job: &JobRecord, runs: &[Run]) -> String {
    let attempts = queue.attempts(job.id).await.expect("the store answers");
    let told = format!("{job:#?} {attempts:#?} {runs:#?}");
    let ([before @ .., last], [run]) = (&attempts[..], runs) else {
        panic!("not one run: {told}");
    };
    assert_eq!(last.outcome, Some(OutcomeKind::Success), "{told}");
    let handed_back = |attempt: &Attempt| attempt.outcome == Some(OutcomeKind::HandedBack);
    assert!(before.iter().all(handed_back), "{told}");
    assert_eq!((job.attempts, job.crashes), (1, 0), "{told}");

    let release = |attempt: &Attempt| attempt.worker.as_str().split('@').next().map(str::to_owned);
    assert_eq!(release(last).as_deref(), Some(&*run.release), "{told}");
    assert_eq!(run.job_type, job.job_type.as_str(), "{told}");
    let only = match job.job_type.as_str() {
        "old_report" => Some(BEFORE),
        _ => is_new(job).then_some(AFTER),
    };
    if let Some(only) = only {
        let knows = |attempt: &Attempt| release(attempt).as_deref() == Some(only);
        assert!(attempts.iter().all(knows), "{told}");
    }
    run.release.clone()
}

/// Whether only the new release knows it: by its name, or by the schema of its payload.
fn is_new(job: &JobRecord) -> bool {
    job.payload_schema == 2 || ["new_report", "send_digest"].contains(&job.job_type.as_str())
}
