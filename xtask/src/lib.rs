//! What the project's chores share with its tests and benchmarks: servers that are thrown away, and
//! programs that are built to be run as processes.
//!
//! A test that needs a server of its own, to restart it or to kill it, starts one from here. All
//! others use the server whose URL `cargo xtask test` hands to them.

pub mod servers;
pub mod programs;
