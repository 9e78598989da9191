//! Pure decisions: what should happen next, from data alone.
//!
//! Nothing here is async, reads a clock, rolls dice or touches a store; whoever calls passes the
//! time and the seed. Stores guard what these functions decide, and never decide themselves.

pub mod backoff;
pub mod classify;
pub mod coherence;
pub mod dedupe;
pub mod error_text;
pub mod evolution;
pub mod invariants;
pub mod lease;
pub mod limits;
pub mod payload;
pub mod prefetch;
pub mod transition;

pub use limits::RETRY_AFTER_MAX;
