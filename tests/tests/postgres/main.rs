//! What takes a Postgres server, or a pooler, of a test's own: wrong passwords, addresses at which
//! nobody answers, poolers that drop what they are told.
#![allow(
    clippy::disallowed_methods,
    reason = "real servers are waited for on the real clock"
)]

mod world;
mod opening;
mod pooler;
