//! Typed background jobs without a broker.

pub mod error;
pub mod job;
pub mod rules;
pub mod seam;
pub mod store;
pub mod time;
