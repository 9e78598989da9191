//! Faults that users of other queues have reported, tried here: each scenario on each store that
//! it concerns. The page `docs/fault-reports.md` says which report each of them is about.
//!
//! Numbers of jobs and rounds are smaller than in the reports where they only cost time; races
//! are real races, between handles of their own, and processes that are to die are killed.
#![allow(
    clippy::disallowed_methods,
    reason = "real stores and processes use the real clock, and callers race on real threads"
)]

#[macro_use]
mod world;
mod child;
mod double_execution;
mod long_jobs;
mod heartbeats;
mod lost_jobs;
mod left_behind;
mod poison;
mod time_limits;
mod stopping;
mod retry_counting;
mod dedupe_races;
mod stuck_keys;
mod newer_update;
mod clocks;
mod connections;
mod payloads;
mod ends;
mod bulks;
mod growth;
mod overflow;
mod deploys;
mod migrations;
mod file_locks;
