//! A PgBouncer in front of a throw-away Postgres, with its own settings left as they are.
//!
//! In particular it ignores no start-up parameter, so a client that sends an unusual one is
//! refused. It has nothing to write down and is killed when it has to end.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::postgres::Postgres;
use super::process::{Process, Signal, Start};
use super::user::User;
use super::{find, greeting, port};

/// How long a client keeps its connection to the server behind the pooler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PoolMode {
    /// As long as it is connected.
    Session,
    /// For one transaction; state of a session does not survive it.
    Transaction,
    /// For one statement; transactions are refused.
    Statement,
}

impl PoolMode {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// A running PgBouncer. Dropping it ends it.
#[derive(Debug)]
pub struct PgBouncer {
    // Before the folder: the pooler ends before its settings are removed.
    process: Process,
    port: u16,
    _folder: TempDir,
}

impl PgBouncer {
    /// Starts a pooler in front of `postgres` and waits until a client gets through to it.
    pub fn start(postgres: &Postgres, mode: PoolMode) -> Result<Self> {
        Self::start_with(postgres, mode, &[])
    }

    /// As [`start`](Self::start), with further settings by name.
    pub fn start_with(
        postgres: &Postgres,
        mode: PoolMode,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let program = find::pgbouncer()?;
        let user = User::below_root()?;
        let folder = super::folder("pgbouncer", user.as_ref())?;
        let file = |name: &str| -> PathBuf { folder.path().join(name) };
        let users = file("userlist.txt");
        fs::write(&users, "\"postgres\" \"\"\n").context("write the list of users")?;

        for _ in 0..port::TRIED {
            let port = port::free()?;
            let users = users.display().to_string();
            let mut ini = ini(postgres.port(), port, mode, &users);
            for (name, value) in settings {
                ini.push_str(&format!("{name} = {value}\n"));
            }
            fs::write(file("pgbouncer.ini"), ini).context("write the settings of pgbouncer")?;
            let process = Process::start(Start {
                program: &program,
                arguments: vec![file("pgbouncer.ini").display().to_string()],
                folder: folder.path(),
                user: user.as_ref(),
                last: Signal::Kill,
            })?;
            // Said once it listens: the one that answers on the port might be somebody else's.
            let says_ready = || process.log_tail().contains("process up:");
            match greeting::wait_until_answered(&process, port, says_ready) {
                Err(_) if process.log_tail().contains("Address already in use") => continue,
                ready => ready?,
            }
            return Ok(Self {
                process,
                port,
                _folder: folder,
            });
        }
        bail!(
            "another program took the port of the new pgbouncer {} times",
            port::TRIED
        );
    }

    /// The URL of the superuser's database, by way of the pooler.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The pooler's process: its id, whether it runs, and the end of its log.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends the pooler and with it its clients' connections; returns when it is gone.
    pub fn stop(&mut self) -> Result<()> {
        self.process.end(Signal::Kill)
    }
}

fn ini(server: u16, port: u16, mode: PoolMode, users: &str) -> String {
    let mode = mode.name();
    format!(
        "\
[databases]
* = host=127.0.0.1 port={server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = {mode}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pooler_forgives_no_start_up_parameter() {
        let ini = ini(20_000, 20_001, PoolMode::Transaction, "/users");
        assert!(ini.contains("pool_mode = transaction\n"), "{ini}");
        assert!(!ini.contains("ignore_startup_parameters"), "{ini}");
    }
}
