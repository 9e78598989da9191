//! What only this store promises, on a real server. Without one these tests are skipped, but fail
//! where `CI` is set.

mod statements;
mod notify;
mod listen;
mod world;
