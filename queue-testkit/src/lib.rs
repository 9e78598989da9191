//! Deterministic tests for background jobs, and the proof that a store keeps its promises.
//!
//! A program tests its own jobs on a [`TestQueue`]: real handlers on a store in memory,
//! one step at a time. Time is moved by hand ([`clock`]), calls are written down ([`recorder`]) or
//! made to fail on demand ([`faulty`]). A check of [`lockfile`] tells which edits would strand jobs that
//! wait. One [`conformance`] suite says what every store means by
//! its verbs, so that a store of your own can prove itself.

pub mod stepper;
mod assert;
pub mod lockfile;
pub mod clock;
mod verb;
pub mod recorder;
pub mod faulty;
pub mod conformance;
#[cfg(feature = "known-bad")]
pub mod known_bad;

#[doc(inline)]
pub use clock::TestSeam;
#[doc(inline)]
pub use stepper::TestQueue;
pub use verb::Verb;
