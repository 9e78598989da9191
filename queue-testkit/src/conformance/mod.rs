//! One suite that says what every store means by its verbs, and proves it.
//!
//! Each case is a promise, named after it, and runs on a store of its own with a clock moved by
//! hand. [`conformance_suite!`](crate::conformance_suite) turns the cases into one test function
//! each, so that one failure does not hide the next and every store shows the same names:
//!
//! ```
//! use std::sync::Arc;
//!
//! use queue_runtime::error::BoxError;
//! use queue_runtime::seam::Seam;
//! use queue_runtime::store::{Store, memory::MemoryStore};
//! use queue_testkit::conformance::Fixture;
//! use queue_testkit::conformance_suite;
//!
//! struct InMemory;
//!
//! #[async_trait::async_trait]
//! impl Fixture for InMemory {
//!     async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
//!         Ok(Arc::new(MemoryStore::new(seam)))
//!     }
//! }
//!
//! conformance_suite!(memory, InMemory; wakes);
//! # fn main() {}
//! ```
//!
//! A store takes its time from the seam that the fixture is given, or from a server whose
//! statements accept the time as an argument. Two families are for stores that promise more, and
//! are named after the semicolon: `wakes` (hints arrive within the process) and
//! `durable` (jobs outlive the process). Everything else is expected of every store.
//!
//! A case that fails prints the calls of the store and their answers, and every field that
//! differs from what was expected.
#![allow(missing_docs, reason = "the name of a case is its promise")]

mod subject;
pub mod jobs;
mod picture;
mod fixtures;
mod suite;
mod cases;
pub mod insert;
pub mod schedule;
pub mod claim;
pub mod claim_order;
pub mod lease;
pub mod settle;
pub mod stale;
pub mod exchange;
pub mod cancel;
pub mod dead_letter;
pub mod replay_with;
pub mod dedupe;
pub mod dedupe_key;
pub mod dedupe_follow;
pub mod dedupe_window;
pub mod idempotency;
pub mod idempotency_window;
pub mod versions;
pub mod admin;
pub mod waiting;
pub mod verify;
pub mod prune;
pub mod races;
pub mod races_settle;
pub mod wakes;
pub mod durable;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use cases::{Case, cases};
pub use fixtures::MemoryFixture;
#[cfg(feature = "postgres")]
pub use fixtures::PostgresFixture;
#[cfg(feature = "sqlite")]
pub use fixtures::SqliteFixture;
pub use picture::{Picture, Seen};
pub use subject::{Fixture, Subject};

/// Runs one case on a fresh store, and prints the history of its calls if it fails.
///
/// # Panics
/// If the case does, or if the store is missing where `CI` is set.
pub fn run<C>(fixture: impl Fixture, case: C)
where
    C: AsyncFnOnce(&Subject),
{
    if is_skipped(&fixture) {
        return;
    }
    /// Enough threads for races to happen on a small machine.
    const THREADS: usize = 4;
    const SEED: u64 = 1;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .expect("the system gives a test its threads");
    let subject = runtime.block_on(Subject::open(fixture, SEED));
    let passed = catch_unwind(AssertUnwindSafe(|| runtime.block_on(case(&subject))));
    runtime.block_on(subject.discard());
    assert!(
        passed.is_ok(),
        "what was asked and answered:\n{}",
        subject.history()
    );
}

/// Says whether a case cannot be run because its store is missing, and prints why.
///
/// # Panics
/// Where `CI` is set: a missing store must not pass for a good one there.
#[allow(clippy::print_stderr, reason = "a skipped case is silent otherwise")]
pub fn is_skipped(fixture: &dyn Fixture) -> bool {
    let Some(why) = fixture.missing() else {
        return false;
    };
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
    true
}
