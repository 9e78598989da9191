//! The table for people and the line for programs.

use anyhow::Result;
use queue_benches::figures::rounded;
use serde_json::json;

use crate::subject::Variant;

/// What a job may cost over a plain function, in milliseconds of processor time.
const CHECK_MS_PER_JOB: f64 = 12.0;
const RELEASE_MS_PER_JOB: f64 = 35.0;

/// What 500 jobs may cost to check again after one body was edited, in seconds.
const RECHECK_SECONDS: f64 = 3.0;

/// Seconds of processor time for one crate alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) check: f64,
    pub(crate) dev: f64,
    pub(crate) release: f64,
    pub(crate) recheck: f64,
}

impl Cost {
    /// The lesser of each: what else runs on the machine only adds.
    pub(crate) fn least(self, other: Self) -> Self {
        Self {
            check: self.check.min(other.check),
            dev: self.dev.min(other.dev),
            release: self.release.min(other.release),
            recheck: self.recheck.min(other.recheck),
        }
    }

    pub(crate) fn in_short(self) -> String {
        format!(
            "check {:.2} s, dev {:.2} s, release {:.2} s, check after an edit {:.2} s",
            self.check, self.dev, self.release, self.recheck
        )
    }
}

/// Everything measured, in order.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<(usize, Variant, Cost)>,
}

impl Report {
    pub(crate) fn add(&mut self, jobs: usize, variant: Variant, cost: Cost) {
        self.rows.push((jobs, variant, cost));
    }

    /// Prints all rows, and the cost per job of the largest crate; returns which budgets it exceeds.
    pub(crate) fn print(&self) -> Result<Vec<String>> {
        println!("seconds of processor time for the crate alone; the best round counts\n");
        println!(
            "{:>5}  {:<6} {:>8} {:>8} {:>8} {:>20}",
            "jobs", "kind", "check", "dev", "release", "check after an edit"
        );
        for (jobs, variant, cost) in &self.rows {
            println!(
                "{jobs:>5}  {:<6} {:>8.2} {:>8.2} {:>8.2} {:>20.2}",
                variant.name(),
                cost.check,
                cost.dev,
                cost.release,
                cost.recheck
            );
        }
        let Some(&(jobs, _, with)) = self
            .rows
            .iter()
            .max_by_key(|(jobs, variant, _)| (*jobs, *variant == Variant::Jobs))
        else {
            return Ok(Vec::new());
        };
        let without = self
            .rows
            .iter()
            .find(|(n, variant, _)| *n == jobs && *variant == Variant::Plain);
        let Some((_, _, without)) = without else {
            return Ok(Vec::new());
        };
        #[allow(clippy::cast_precision_loss, reason = "jobs are counted in hundreds")]
        let per_job = |with: f64, without: f64| 1_000.0 * (with - without) / jobs as f64;
        let check = per_job(with.check, without.check);
        let dev = per_job(with.dev, without.dev);
        let release = per_job(with.release, without.release);
        println!("\nof {jobs} jobs, each over a plain function, in milliseconds:");
        println!("  check    {check:>6.1}   budget {CHECK_MS_PER_JOB}");
        println!("  dev      {dev:>6.1}");
        println!("  release  {release:>6.1}   budget {RELEASE_MS_PER_JOB}");
        println!(
            "check after an edit of one body: {:.2} s, budget {RECHECK_SECONDS} s for 500 jobs\n",
            with.recheck
        );
        let line = json!({
            "jobs": jobs,
            "check_ms_per_job": rounded(check, 1),
            "dev_ms_per_job": rounded(dev, 1),
            "release_ms_per_job": rounded(release, 1),
            "recheck_seconds": rounded(with.recheck, 2),
            "budget": {
                "check_ms_per_job": CHECK_MS_PER_JOB,
                "release_ms_per_job": RELEASE_MS_PER_JOB,
                "recheck_seconds_of_500_jobs": RECHECK_SECONDS,
            },
        });
        println!("{line}");
        let mut missed = Vec::new();
        let mut hold = |what: &str, cost: f64, budget: f64| {
            if cost > budget {
                missed.push(format!("{what}: {cost:.1}, budget {budget}"));
            }
        };
        hold("milliseconds per job in a check", check, CHECK_MS_PER_JOB);
        hold(
            "milliseconds per job in a release build",
            release,
            RELEASE_MS_PER_JOB,
        );
        if jobs == 500 {
            hold(
                "seconds for a check after an edit",
                with.recheck,
                RECHECK_SECONDS,
            );
        }
        Ok(missed)
    }
}
