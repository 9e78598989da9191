//! What a run came to, as the one JSON line at its end.

use serde_json::{Value, json};

/// The numbers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Points of the crash matrix, each on one store.
    pub cells: usize,
    /// Worlds that those were tried in.
    pub trials: usize,
    /// Jobs of the load.
    pub jobs: u64,
    /// Processes that were killed, asked to stop, or frozen under load.
    pub kills: u64,
    /// Accepted jobs that are missing.
    pub lost: usize,
    /// Jobs that took their effect more than once.
    pub double_effects: usize,
    /// Attempts that followed one whose lease was lost.
    pub re_runs: usize,
    /// Invariants that did not hold.
    pub violations: usize,
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
}

impl Summary {
    /// Adds the numbers of another run.
    pub fn add(&mut self, other: Self) {
        self.cells += other.cells;
        self.trials += other.trials;
        self.jobs += other.jobs;
        self.kills += other.kills;
        self.lost += other.lost;
        self.double_effects += other.double_effects;
        self.re_runs += other.re_runs;
        self.violations += other.violations;
        self.seeds.extend(other.seeds);
        self.seeds.dedup();
    }

    /// The line.
    pub fn line(&self) -> String {
        let Self {
            cells,
            trials,
            jobs,
            kills,
            lost,
            double_effects,
            re_runs,
            violations,
            seeds,
        } = self;
        let line: Value = json!({
            "cells": cells, "trials": trials, "jobs": jobs, "kills": kills, "lost": lost,
            "double_effects": double_effects, "re_runs": re_runs, "violations": violations,
            "seeds": seeds,
        });
        line.to_string()
    }
}
