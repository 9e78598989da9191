//! What the project's chores share with its tests and benchmarks: servers that are thrown away.
//!
//! A test that needs a server of its own, to restart it or to kill it, starts one from here. All
//! others use the server whose URL `cargo xtask test` hands to them.

pub mod servers;
