//! The street: what happens to a job, one stage a file, in this order.
//!
//! `declare → enqueue → [store] → claim → dispatch → settle → [store]`, with `keepalive` beside
//! dispatch. Stages never call one another; values go from one to the next in `worker.rs`.

pub(crate) mod claim;
pub mod declare;
pub(crate) mod dispatch;
pub mod enqueue;
pub(crate) mod keepalive;
pub(crate) mod settle;
