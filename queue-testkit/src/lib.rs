//! Deterministic tests for background jobs, and the proof that a store keeps its promises.
//!
//! Time is moved by hand ([`clock`]), calls are written down ([`recorder`]) or made to fail on
//! demand ([`faulty`]), and one [`conformance`] suite says what every store means by its verbs.

pub mod clock;
mod verb;
pub mod recorder;
pub mod faulty;
pub mod conformance;

pub use verb::Verb;
