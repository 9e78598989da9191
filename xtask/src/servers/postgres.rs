//! A Postgres server in a temporary folder, on a loopback port, without a Unix socket.
//!
//! Everybody on this machine who knows the port may enter as its superuser `postgres`: it is for
//! data that nobody minds. Started by root it runs as an unprivileged user, who owns the folder.
//! Killing it kills the parent of all its processes, by process id; the call returns when the last
//! child has followed, so that the next start finds nobody in the data folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::find::{self, PostgresPrograms};
use super::process::{Process, Signal, Start};
use super::user::User;
use super::{greeting, port};

/// Enough for suites that run side by side, each with its own pools.
const CONNECTIONS: &str = "300";

/// What makes a server quick whose data nobody will miss: the disk is not waited for.
///
/// Not `synchronous_commit=off`, although it is usual beside these: with it a killed server forgets
/// commits that it had answered, and tests kill servers to see that nothing of the kind happens.
const QUICK: [(&str, &str); 2] = [("fsync", "off"), ("full_page_writes", "off")];

/// How a server is started; the default is the quick one that tests want.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of `initdb` and `postgres`; by default they are looked for, see [`find::postgres`].
    pub bin: Option<PathBuf>,
    /// Whether a commit survives a power failure, as by Postgres' own defaults. Without it a commit
    /// survives a crash of the server, not one of the machine.
    pub durable: bool,
    /// Further settings by name, which win over ours.
    pub settings: Vec<(String, String)>,
}

/// A running server, or one that is stopped and can be started again on the same data.
///
/// Dropping it ends the server and removes the data.
#[derive(Debug)]
pub struct Postgres {
    // Before the folder: the server ends before its data is removed.
    process: Process,
    programs: PostgresPrograms,
    user: Option<User>,
    port: u16,
    options: Options,
    folder: TempDir,
}

impl Postgres {
    /// Makes a data folder, starts a server on it, and waits until it serves.
    pub fn start(options: Options) -> Result<Self> {
        let programs = find::postgres(options.bin.as_deref())?;
        let user = User::below_root()?;
        let folder = super::folder("postgres", user.as_ref())?;
        initdb(&programs, user.as_ref(), folder.path())?;

        for _ in 0..port::TRIED {
            let port = port::free()?;
            let process = run(&programs, user.as_ref(), folder.path(), port, &options)?;
            match wait(&process, port, folder.path()) {
                Err(_) if process.log_tail().contains("Address already in use") => continue,
                ready => ready?,
            }
            return Ok(Self {
                process,
                programs,
                user,
                port,
                options,
                folder,
            });
        }
        bail!(
            "another program took the port of the new Postgres server {} times",
            port::TRIED
        );
    }

    /// The URL of the superuser's database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The port on 127.0.0.1; a restart keeps it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process: its id, whether it runs, and the end of its log.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends all sessions, writes everything down, and ends; returns when it is gone.
    pub fn stop(&mut self) -> Result<()> {
        self.process.end(Signal::Interrupt)
    }

    /// Ends at once and tells its clients; the next start recovers what was committed.
    pub fn stop_immediate(&mut self) -> Result<()> {
        self.process.end(Signal::Quit)
    }

    /// Kills the server, as a crash would; returns when its last process is gone.
    pub fn kill(&mut self) -> Result<()> {
        self.process.end(Signal::Kill)
    }

    /// Starts the server again on the same port and data; stops it first if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.process = run(
            &self.programs,
            self.user.as_ref(),
            self.folder.path(),
            self.port,
            &self.options,
        )?;
        wait(&self.process, self.port, self.folder.path())
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn initdb(programs: &PostgresPrograms, user: Option<&User>, folder: &Path) -> Result<()> {
    let mut command = Command::new(&programs.initdb);
    command
        .arg("--pgdata")
        .arg(data(folder))
        .args(["--username=postgres", "--auth=trust", "--no-sync"])
        .args(["--encoding=UTF8", "--locale=C"])
        .current_dir(folder)
        .env("LC_ALL", "C");
    if let Some(user) = user {
        user.run(&mut command);
    }
    let done = command.output().with_context(|| {
        let as_whom = user.map_or(String::new(), |user| format!(" as {}", user.name()));
        format!("start {}{as_whom}", programs.initdb.display())
    })?;
    ensure!(
        done.status.success(),
        "{} failed ({}):\n{}",
        programs.initdb.display(),
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(())
}

fn run(
    programs: &PostgresPrograms,
    user: Option<&User>,
    folder: &Path,
    port: u16,
    options: &Options,
) -> Result<Process> {
    Process::start(Start {
        program: &programs.postgres,
        arguments: arguments(&data(folder), port, options),
        folder,
        user,
        last: Signal::Quit,
    })
}

/// The server's command line; of two settings of one name the later wins.
fn arguments(data: &Path, port: u16, options: &Options) -> Vec<String> {
    let mut settings = vec![
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("max_connections", CONNECTIONS),
    ];
    if !options.durable {
        settings.extend(QUICK);
    }
    let further = options.settings.iter();
    settings.extend(further.map(|(name, value)| (name.as_str(), value.as_str())));

    let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
    arguments.extend(["-p".to_owned(), port.to_string()]);
    for (name, value) in settings {
        arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    arguments
}

fn wait(process: &Process, port: u16, folder: &Path) -> Result<()> {
    greeting::wait_until_answered(process, port, || says_ready(&data(folder), process))
}

/// Whether the server's own note in its data folder says that it is ready, and is of this process:
/// the one that answers on the port might be somebody else's.
fn says_ready(data: &Path, process: &Process) -> bool {
    let note = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let mut lines = note.lines();
    let ours = lines.next().and_then(|id| id.trim().parse().ok()) == Some(process.id());
    ours && lines.any(|line| line.trim() == "ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &Options) -> Vec<String> {
        let arguments = arguments(Path::new("/data"), 20_000, options);
        arguments
            .into_iter()
            .filter(|argument| argument.contains('='))
            .collect()
    }

    #[test]
    fn only_a_server_that_need_not_be_durable_skips_the_disk() {
        let quick = settings(&Options::default());
        assert!(quick.contains(&"fsync=off".to_owned()), "{quick:?}");

        let durable = settings(&Options {
            durable: true,
            ..Options::default()
        });
        assert_eq!(
            durable,
            [
                "listen_addresses=127.0.0.1",
                "unix_socket_directories=",
                "max_connections=300",
            ]
        );
    }

    #[test]
    fn a_callers_setting_stands_after_ours_and_so_wins() {
        let set = settings(&Options {
            settings: vec![("fsync".to_owned(), "on".to_owned())],
            ..Options::default()
        });
        let last = set.iter().rfind(|setting| setting.starts_with("fsync="));
        assert_eq!(last.map(String::as_str), Some("fsync=on"));
    }
}
