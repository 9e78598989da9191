//! What only this store promises, on a real server. Without one these tests are skipped, but fail
//! where `CI` is set.

mod clocks;
mod costs;
mod exchanges;
mod held_rows;
mod inserter;
mod in_tx;
mod lanes;
mod plans;
mod pool;
mod races;
mod refusals;
mod rights;
mod schema;
mod statements;
mod notify;
mod large;
mod listen;
mod surroundings;
mod unreadable;
mod verify;
mod stage;
mod waits;
pub(super) mod world;
