//! What keeps a store healthy beside the street: rescue of expired leases, and retention.
//!
//! Neither needs a handler, so any worker of a store does both for all of its jobs.

pub(crate) mod rescue;
pub(crate) mod prune;
