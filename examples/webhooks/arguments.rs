//! Which part this process plays, by its arguments.

use std::path::Path;

use anyhow::{Result, bail};

use super::orders::{self, Order};
use super::process::WORKER;

/// How often `--kill` has the worker killed.
const KILLS: usize = 2;

const USAGE: &str = "usage: cargo run --example webhooks -- examples/data/orders.csv [--kill]";

/// The parts to play.
pub(crate) enum Role {
    /// Imports, plays the partner, and watches over the worker.
    Parent { orders: Vec<Order>, kills: usize },
    /// Runs the jobs of a database until its parent is done.
    Worker { database: String, partner: String },
}

/// Reads the arguments and, for the parent, the file that they name.
///
/// # Errors
/// If nothing can be started with them; says what to write instead.
pub(crate) fn role() -> Result<Role> {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (file, kills) = match arguments.as_slice() {
        [WORKER, database, partner] => {
            let (database, partner) = (database.to_string(), partner.to_string());
            return Ok(Role::Worker { database, partner });
        }
        [file] if !file.starts_with("--") => (file, 0),
        [file, "--kill"] | ["--kill", file] => (file, KILLS),
        [] => bail!("no file of orders is given\n{USAGE}"),
        other => bail!("cannot make sense of {other:?}\n{USAGE}"),
    };
    let orders = orders::read(Path::new(file))?;
    Ok(Role::Parent { orders, kills })
}
