//! `jobs.lock`: the jobs of a program as a checked-in text, and whether a build still keeps to it.
//!
//! A registry and the file's text come in; a [`Report`] of differences comes out, each judged by
//! [`rules::evolution`](crate::rules::evolution). [`deploy`] asks the same of the rows that really
//! wait in a store. Files are read and written by whoever calls: `queue-testkit` in a test.

#[cfg(feature = "shapes")]
mod contracts;
mod report;
mod text;
mod parse;
mod words;
mod linked;
pub mod deploy;

#[cfg(feature = "shapes")]
pub use contracts::{check, contracts, render};
pub use linked::missing;
pub use parse::{LockfileError, parse};
pub use report::Report;
pub use text::write;

/// The number of the file's form. A build reads its own and lower ones.
pub const FORMAT: u32 = 1;

/// The setting that says which package has a job.
const PACKAGE: &str = "package";

/// What the file is called, beside the `Cargo.toml` of the package that checks it.
pub const FILE_NAME: &str = "jobs.lock";
