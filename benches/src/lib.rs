//! What the project's benchmarks share: a place on a real disk, medians, and a verdict.
//!
//! A benchmark compares things with each other within one run, in rounds in which they take
//! turns, because a machine is not the same from one minute to the next. It never fails on time.

pub mod disk;
pub mod figures;
