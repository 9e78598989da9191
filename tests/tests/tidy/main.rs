//! The repository checks itself: rules of layout and wording that need no reviewer.
//!
//! Each rule is a function from a tree of files to complaints. One test runs it on the repository,
//! another on a small bad sample, which proves that the rule can fail.

mod tree;
mod source;
mod paths;
mod imports;
mod purity;
mod statements;
mod modules;
mod words;
mod markdown;
mod documents;
mod quotes;
mod named_tests;
mod requirements;
mod fault_reports;
mod guarantees;
mod lifecycle;
mod errors;
mod defaults;
mod promises;
mod verifying;
mod compile_time;

/// Fails with every complaint, so that one run shows all there is to do.
#[track_caller]
fn assert_clean(complaints: &[String]) {
    assert!(
        complaints.is_empty(),
        "{} complaints:\n  {}",
        complaints.len(),
        complaints.join("\n  ")
    );
}
