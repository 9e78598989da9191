//! Postgres servers, and pgbouncer before them.

mod world;
mod opening;
mod pooler;
