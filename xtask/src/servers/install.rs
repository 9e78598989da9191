//! Installs a missing server from Debian's packages, where that can be done without asking.
//!
//! For the chores only: a test that finds no server says so and leaves the machine as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::find::{self, PostgresPrograms};
use super::user;

const SCRIPT: &str = include_str!("install.sh");

/// Finds Postgres like [`find::postgres`]; installs it if it is nowhere and that is possible.
pub fn postgres(bin: Option<&Path>) -> Result<PostgresPrograms> {
    let nameless = bin.is_none() && std::env::var_os(find::PG_BIN).is_none();
    match find::postgres(bin) {
        Err(_) if nameless && is_possible() => {
            package("postgresql")?;
            find::postgres(bin)
        }
        found => found,
    }
}

/// Finds PgBouncer like [`find::pgbouncer`]; installs it if it is nowhere and that is possible.
pub fn pgbouncer() -> Result<PathBuf> {
    match find::pgbouncer() {
        Err(_) if is_possible() => {
            package("pgbouncer")?;
            find::pgbouncer()
        }
        found => found,
    }
}

/// Only root may, and only apt-get is known here.
fn is_possible() -> bool {
    let mut asked = Command::new("apt-get");
    asked.arg("--version").stdout(Stdio::null());
    user::is_root() && asked.status().is_ok_and(|status| status.success())
}

fn package(name: &str) -> Result<()> {
    eprintln!("installing Debian's {name}");
    let status = Command::new("sh")
        .args(["-c", SCRIPT, "install", name])
        .stdin(Stdio::null())
        // The standard output belongs to what the chore has to say.
        .stdout(io::stderr())
        .status()
        .context("start a shell")?;
    ensure!(
        status.success(),
        "apt-get install {name} failed ({status}): install it by hand"
    );
    Ok(())
}
