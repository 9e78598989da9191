//! Throw-away servers: found on this machine, started on a loopback port, gone with their owner.
//!
//! A server lives in a temporary folder of its own and shares nothing with a server of the system.
//! It ends when its value is dropped, and also when its owner is killed: see [`Process`]. Every
//! server is ended by its own process id, never by a name.
//!
//! Knows no database driver: a server is ready when it answers a client's greeting.

pub mod postgres;
pub mod pgbouncer;
pub mod find;
pub mod install;
mod greeting;
mod process;
mod user;
mod port;

use anyhow::{Context, Result};
use tempfile::TempDir;

pub use pgbouncer::{PgBouncer, PoolMode};
pub use postgres::{Options, Postgres};
pub use process::Process;

/// A temporary folder for a server that runs as `user`.
fn folder(server: &str, user: Option<&user::User>) -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix(&format!("throw-away-{server}-"))
        .tempdir()
        .context("make a temporary folder")?;
    if let Some(user) = user {
        user.own(folder.path())?;
    }
    Ok(folder)
}
