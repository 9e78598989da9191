//! What came of it all, from the store and the receiver's ledger, and whether that adds up.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use queue_runtime::job::OutcomeKind;
use queue_runtime::{JobId, JobState, Queue};
use serde::Serialize;

use super::receiver::Receiver;

/// The last line of the output.
#[derive(Default, Serialize)]
struct Summary {
    orders: usize,
    /// Orders whose job is done and which the receiver has shipped.
    delivered: usize,
    dead_letter: usize,
    /// Orders that are neither.
    lost: usize,
    /// Orders that the receiver has shipped more than once.
    double_effects: usize,
    /// Attempts that failed and were followed by another.
    retries: usize,
    timeouts: usize,
    worker_kills: usize,
}

/// Everything that is shown.
#[derive(Default)]
pub(crate) struct Report {
    summary: Summary,
    /// Why orders are dead letters, and how many.
    reasons: BTreeMap<String, usize>,
    /// Attempts that ended with their worker's process.
    lost_attempts: usize,
    /// Deliveries that the receiver knew already.
    repeats: usize,
    /// Worker processes that ran attempts.
    workers: usize,
    /// What two sources say differently; empty if all is well.
    faults: Vec<String>,
}

/// Asks the store about every job and the receiver about every shipment.
pub(crate) async fn gather(
    queue: &Queue,
    jobs: &[(String, JobId)],
    receiver: &Receiver,
    worker_kills: usize,
) -> Result<Report> {
    let shipments = receiver.shipments();
    let mut report = Report::default();
    let mut workers = HashSet::new();
    let sum = &mut report.summary;
    sum.orders = jobs.len();
    sum.worker_kills = worker_kills;
    sum.double_effects = shipments.values().filter(|times| **times > 1).count();
    for (order_id, id) in jobs {
        // A job that the store does not have is lost, whatever became of its order.
        let Some(job) = queue.job(*id).await? else {
            sum.lost += 1;
            continue;
        };
        match job.state {
            JobState::Done if shipments.contains_key(order_id) => sum.delivered += 1,
            JobState::DeadLetter => {
                sum.dead_letter += 1;
                let reason = job.last_error.unwrap_or_default();
                *report.reasons.entry(reason).or_default() += 1;
            }
            _ => sum.lost += 1,
        }
        let attempts = queue.attempts(*id).await?;
        let last = attempts.len().saturating_sub(1);
        for (place, attempt) in attempts.into_iter().enumerate() {
            use OutcomeKind::{Lost, Panicked, Retry, RetryAfter, TimedOut};
            let failed = matches!(
                attempt.outcome,
                Some(Retry | RetryAfter | TimedOut | Panicked)
            );
            sum.retries += usize::from(failed && place < last);
            sum.timeouts += usize::from(attempt.outcome == Some(TimedOut));
            report.lost_attempts += usize::from(attempt.outcome == Some(Lost));
            workers.insert(attempt.worker);
        }
    }
    report.workers = workers.len();
    report.repeats = receiver.repeats();
    let counts = queue.counts().await?;
    report.compare(
        "jobs in the store",
        counts.total() as usize,
        report.summary.orders,
    );
    report.compare("jobs done", counts.done as usize, report.summary.delivered);
    report.compare("orders shipped", shipments.len(), report.summary.delivered);
    report.compare("orders lost", report.summary.lost, 0);
    report.compare("orders shipped twice", report.summary.double_effects, 0);
    Ok(report)
}

impl Report {
    fn compare(&mut self, what: &str, found: usize, expected: usize) {
        if found != expected {
            self.faults.push(format!("{what}: {found}, not {expected}"));
        }
    }

    /// Prints the table for people and, last, the line for programs; fails if it does not add up.
    pub(crate) fn print(&self, took: Duration) -> Result<()> {
        let sum = &self.summary;
        let row = |what: &str, count: usize| println!("{what:<52} {count:>6}");
        println!();
        row("orders", sum.orders);
        row("delivered: done here, shipped there", sum.delivered);
        row("dead letters", sum.dead_letter);
        for (reason, count) in &self.reasons {
            row(&format!("  {reason}"), *count);
        }
        row("lost", sum.lost);
        row("shipped more than once", sum.double_effects);
        row("attempts that were tried again", sum.retries);
        row(
            "  of these, or at last, cut by the time limit",
            sum.timeouts,
        );
        row(
            "attempts lost with their worker, taken over by rescue",
            self.lost_attempts,
        );
        row("deliveries that the receiver knew already", self.repeats);
        row("worker processes", self.workers);
        row("  killed", sum.worker_kills);
        println!("{:<52} {:>5.1}s", "duration", took.as_secs_f64());
        println!("{}", serde_json::to_string(sum)?);
        ensure!(
            self.faults.is_empty(),
            "it does not add up: {}",
            self.faults.join("; ")
        );
        Ok(())
    }
}
