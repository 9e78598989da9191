//! Medians over the rounds, the table, the line for programs, and which target was missed.

use std::time::Duration;

use anyhow::Result;
use queue_benches::figures::{grouped, median, rounded};
use serde::Serialize;

use crate::drain::Drained;
use crate::enqueue::Enqueued;
use crate::{CONCURRENCY, ENQUEUERS, JOBS, raw};

/// Enqueuers together must reach this many times the rate of one.
const RATIO_MIN: f64 = 8.0;

/// A commit of a drain must serve this many jobs.
const PER_COMMIT_MIN: f64 = 50.0;

/// What one round measured.
pub(crate) struct Round {
    pub(crate) sync: Duration,
    pub(crate) single: Enqueued,
    pub(crate) shared: Enqueued,
    pub(crate) raw_single: f64,
    pub(crate) raw_batch: f64,
    pub(crate) drain: Drained,
    pub(crate) raw_drain: f64,
}

impl Round {
    /// Says how the promises fared, and on what a disk.
    pub(crate) fn in_short(&self) -> String {
        let ratio = self.shared.per_second / self.single.per_second;
        let (sync, per_commit) = (self.sync, self.drain.per_commit);
        format!("a page in {sync:.1?}, ratio {ratio:.1}, drain {per_commit:.0} jobs in a commit")
    }
}

/// The line for programs: medians.
#[derive(Serialize)]
struct Line {
    rounds: usize,
    sync_ms: f64,
    enqueuers: usize,
    enqueue_1_per_s: f64,
    enqueue_all_per_s: f64,
    enqueue_ratio: f64,
    enqueue_jobs_per_commit: f64,
    drain_jobs: usize,
    drain_jobs_per_s: f64,
    drain_jobs_per_commit: f64,
    raw_insert_per_s: f64,
    raw_batch_insert_per_s: f64,
    raw_drain_per_s: f64,
    targets_met: bool,
}

/// All rounds.
#[derive(Default)]
pub(crate) struct Report(Vec<Round>);

impl Report {
    pub(crate) fn add(&mut self, round: Round) {
        self.0.push(round);
    }

    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(&self.0.iter().map(of).collect::<Vec<_>>())
    }

    fn single(&self) -> f64 {
        self.median(|round| round.single.per_second)
    }

    fn shared(&self) -> f64 {
        self.median(|round| round.shared.per_second)
    }

    /// How many times the rate of one enqueuer all of them reach.
    fn ratio(&self) -> f64 {
        self.shared() / self.single()
    }

    /// Jobs per commit of a drain.
    fn per_commit(&self) -> f64 {
        self.median(|round| round.drain.per_commit)
    }

    /// Says which promises the store did not keep.
    pub(crate) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let (ratio, per_commit) = (self.ratio(), self.per_commit());
        if ratio < RATIO_MIN {
            missed.push(format!(
                "{ENQUEUERS} enqueuers reach {ratio:.1} times the rate of one, not {RATIO_MIN}"
            ));
        }
        if per_commit < PER_COMMIT_MIN {
            missed.push(format!(
                "a drain commits once per {per_commit:.1} jobs, not per {PER_COMMIT_MIN}"
            ));
        }
        missed
    }

    /// Prints the table for people and, last, the line for programs.
    pub(crate) fn print(&self) -> Result<()> {
        println!("\n{:<42} {:>9}         range over the rounds", "", "median");
        self.row("a page on the disk", "ms", 2, |r| {
            r.sync.as_secs_f64() * 1e3
        });
        println!("\nenqueueing");
        self.row("1 enqueuer", "jobs/s", 0, |r| r.single.per_second);
        self.row(&format!("{ENQUEUERS} enqueuers"), "jobs/s", 0, |r| {
            r.shared.per_second
        });
        self.row("  jobs in a commit", "", 1, |r| r.shared.per_commit);
        self.row("  times the rate of one", "", 1, |r| {
            r.shared.per_second / r.single.per_second
        });
        self.row("raw: a row in each transaction", "rows/s", 0, |r| {
            r.raw_single
        });
        self.row(
            &format!("raw: {} rows", grouped(raw::BATCH as f64)),
            "rows/s",
            0,
            |r| r.raw_batch,
        );
        println!(
            "\ndraining {} jobs, {CONCURRENCY} at once",
            grouped(JOBS as f64)
        );
        self.row("worker", "jobs/s", 0, |r| r.drain.per_second);
        self.row("  jobs in a commit", "", 1, |r| r.drain.per_commit);
        self.row(
            &format!("raw: take and finish {CONCURRENCY}"),
            "rows/s",
            0,
            |r| r.raw_drain,
        );

        println!("\n{}", serde_json::to_string(&self.line())?);
        Ok(())
    }

    fn line(&self) -> Line {
        let whole = |of: fn(&Round) -> f64| self.median(of).round();
        Line {
            rounds: self.0.len(),
            sync_ms: rounded(self.median(|r| r.sync.as_secs_f64() * 1e3), 3),
            enqueuers: ENQUEUERS,
            enqueue_1_per_s: self.single().round(),
            enqueue_all_per_s: self.shared().round(),
            enqueue_ratio: rounded(self.ratio(), 2),
            enqueue_jobs_per_commit: rounded(self.median(|r| r.shared.per_commit), 1),
            drain_jobs: JOBS,
            drain_jobs_per_s: whole(|r| r.drain.per_second),
            drain_jobs_per_commit: rounded(self.per_commit(), 1),
            raw_insert_per_s: whole(|r| r.raw_single),
            raw_batch_insert_per_s: whole(|r| r.raw_batch),
            raw_drain_per_s: whole(|r| r.raw_drain),
            targets_met: self.missed().is_empty(),
        }
    }

    fn row(&self, what: &str, unit: &str, decimals: usize, of: impl Fn(&Round) -> f64) {
        let show = |number: f64| match decimals {
            0 => grouped(number),
            _ => format!("{number:.decimals$}"),
        };
        let values: Vec<f64> = self.0.iter().map(of).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        println!(
            "  {what:<40} {:>9} {unit:<6}  {:>9} – {}",
            show(median(&values)),
            show(least),
            show(most)
        );
    }
}
