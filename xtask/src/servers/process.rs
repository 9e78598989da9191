//! One server process that ends with its owner, and whose end is an event.
//!
//! Between the owner and the server stands a small shell, the guardian (`guardian.sh`). It reads
//! the owner's orders from a pipe; when the owner is killed, the kernel closes that pipe and the
//! guardian ends the server. The kernel's own parent-death signal was refused: it follows the
//! *thread* that started the server, and a test's thread ends before the test's process does.
//!
//! All processes of a server write to one other pipe, which we read. Its end says that the last
//! of them is gone, also the children that a killed parent left behind; no process id is polled.
//!
//! Both stand in a process group of their own, so that an interrupt typed at the terminal reaches
//! the owner only. Knows nothing about any particular server.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::user::{self, User};

const GUARDIAN: &str = include_str!("guardian.sh");

/// How much of a server's log is kept: enough for what it says when it fails.
const TAIL_LINES: usize = 60;

/// Far above what an idle server takes to end; a busy machine has been seen to need seconds.
const END_WITHIN: Duration = Duration::from_secs(30);

/// What to run, and as whom.
pub(crate) struct Start<'s> {
    pub(crate) program: &'s Path,
    pub(crate) arguments: Vec<String>,
    /// The server's working folder; removed if the owner is killed.
    pub(crate) folder: &'s Path,
    pub(crate) user: Option<&'s User>,
    /// The signal that ends the server when nobody is left to ask for another.
    pub(crate) last: Signal,
}

/// The signals that end a server, by what they mean to Postgres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Signal {
    /// Postgres: ends sessions and writes everything down.
    Interrupt,
    /// Postgres: ends at once and recovers at the next start.
    Quit,
    /// Ends without being asked.
    Kill,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "INT",
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
        }
    }
}

/// A server process. Dropping it ends the server and waits until it is gone.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    guardian: Child,
    /// Absent once the server is gone.
    orders: Option<ChildStdin>,
    id: u32,
    log: Arc<Log>,
    last: Signal,
}

impl Process {
    pub(crate) fn start(start: Start<'_>) -> Result<Self> {
        let Start {
            program,
            arguments,
            folder,
            user,
            last,
        } = start;
        let (reader, writer) = std::io::pipe().context("open a pipe")?;
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARDIAN, "guardian", last.name()])
            .args([folder, program])
            .args(arguments)
            .current_dir(folder)
            // Messages are looked for in the log, so they must not be translated.
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer);
        user::own_group(&mut command);
        if let Some(user) = user {
            user.run(&mut command);
        }
        let mut guardian = command
            .spawn()
            .with_context(|| format!("start a shell for {}", program.display()))?;
        // The command holds our copy of the pipe's writing end; with it the pipe would never end.
        drop(command);

        let log = Log::read(reader);
        let orders = guardian.stdin.take();
        let mut answer = String::new();
        if let Some(stdout) = guardian.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut answer)
                .context("read the server's process id")?;
        }
        let Ok(id) = answer.trim().parse() else {
            bail!("start {}: the shell named no process", program.display());
        };
        Ok(Self {
            program: program.to_owned(),
            guardian,
            orders,
            id,
            log,
            last,
        })
    }

    /// The process id of the server.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether a process of the server is alive.
    pub fn is_running(&self) -> bool {
        !self.log.state().ended
    }

    /// The last lines that the server wrote.
    pub fn log_tail(&self) -> String {
        self.log.state().tail.iter().cloned().collect()
    }

    /// Sends `signal` and waits until the last process of the server is gone.
    ///
    /// A server that does not end within half a minute is killed, and that is an error. One that
    /// is gone already is not.
    pub(crate) fn end(&mut self, signal: Signal) -> Result<()> {
        if self.orders.is_none() {
            return Ok(());
        }
        self.order(signal.name());
        let ended = self.log.wait_for_end(END_WITHIN);
        if !ended {
            self.order(Signal::Kill.name());
            ensure!(
                self.log.wait_for_end(END_WITHIN),
                "{} (process {}) does not end",
                self.program.display(),
                self.id
            );
        }
        self.order("gone");
        self.orders = None;
        self.guardian.wait().context("wait for the guardian")?;
        ensure!(
            ended,
            "{} did not end within {} s of {signal:?} and was killed:\n{}",
            self.program.display(),
            END_WITHIN.as_secs(),
            self.log_tail()
        );
        Ok(())
    }

    /// A guardian that is gone takes no orders; then the end of the log tells.
    fn order(&mut self, order: &str) {
        if let Some(orders) = &mut self.orders {
            let _ = writeln!(orders, "{order}").and_then(|()| orders.flush());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end(self.last) {
            eprintln!("{error:#}");
        }
    }
}

/// What a server wrote, as far as it is kept, and whether it can still write.
#[derive(Debug, Default)]
struct Log {
    state: Mutex<State>,
    end: Condvar,
}

#[derive(Debug, Default)]
struct State {
    tail: VecDeque<String>,
    ended: bool,
}

impl Log {
    fn read(source: PipeReader) -> Arc<Self> {
        let log = Arc::new(Self::default());
        let writer = Arc::clone(&log);
        // Ends with the server, which its owner ends.
        thread::spawn(move || {
            writer.follow(source);
            writer.state().ended = true;
            writer.end.notify_all();
        });
        log
    }

    fn follow(&self, source: impl Read) {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        while matches!(source.read_until(b'\n', &mut line), Ok(1..)) {
            let tail = &mut self.state().tail;
            if tail.len() == TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
    }

    fn wait_for_end(&self, limit: Duration) -> bool {
        let state = self.state();
        let waited = self
            .end
            .wait_timeout_while(state, limit, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// A panic elsewhere leaves lines and a flag that are still true.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
