//! The whole street at once: declared jobs, a queue, a worker, and a store in memory or in a file.
//!
//! Time is moved by hand on the memory store. Tests on a file use the real clock and wait for
//! events.
#![allow(
    clippy::disallowed_methods,
    reason = "tests on real stores use the real clock"
)]

mod world;
mod outcomes;
mod leases;
mod renewals;
mod shutdown;
mod building;
mod outage;
mod keys;
mod cached;
mod hooks;
mod logs;
mod unread;
mod replaying;
mod bad_input;
mod sqlite;
mod transactions;
mod stores;
mod schemas;
mod churn;
mod completing;
mod shown;
mod processes;
mod signals;
mod sql_function;
mod postgres;
mod environment;
mod postgres_server;
mod forwarder;
mod postgres_wakes;
mod postgres_outage;
mod postgres_held_rows;
mod postgres_refused;
