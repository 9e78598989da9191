//! What only this store promises; what every store promises is in the conformance suite.

mod file;
mod in_tx;
mod open;
mod plans;
mod schema;
mod same_as_memory;
mod statements;
mod unreadable;
mod verify;
pub(super) mod world;
mod writer;
