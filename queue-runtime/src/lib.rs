//! Typed background jobs without a broker.

mod backend;
pub mod cache;
pub mod error;
pub mod handler;
pub mod job;
pub mod observe;
pub mod pipeline;
pub mod rules;
pub mod seam;
pub mod store;
pub mod time;
