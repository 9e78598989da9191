//! The processes of a world: started, killed, frozen, thawed, and heard.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};

use crate::place::{Place, StoreKind};

/// Longer than anything takes that a supervisor waits for, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a process.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A world: a store, a folder for ledgers, and processes.
pub struct Rig {
    /// The store that all share.
    pub place: Place,
    folder: tempfile::TempDir,
    program: PathBuf,
    children: BTreeMap<String, Process>,
    heard: mpsc::UnboundedSender<(String, Said)>,
    lines: mpsc::UnboundedReceiver<(String, Said)>,
    /// Lines that were heard while others were waited for.
    kept: Vec<(String, String)>,
    /// Processes that ended while something else was waited for.
    gone: VecDeque<String>,
    interrupted: BTreeSet<String>,
}

struct Process {
    child: Child,
    input: tokio::process::ChildStdin,
    log: PathBuf,
}

/// What comes from a process.
enum Said {
    Line(String),
    /// It says nothing more: it has ended.
    Nothing,
}

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ends it at once.
    Kill,
    /// Asks it to stop.
    Term,
    /// Freezes it.
    Stop,
    /// Lets it go on.
    Cont,
}

impl Rig {
    /// Makes a world with an empty store that no process has opened yet.
    ///
    /// # Errors
    /// If there is no place for it.
    pub fn new(kind: StoreKind) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (heard, lines) = mpsc::unbounded_channel();
        Ok(Self {
            place: Place::new(kind, folder.path())?,
            folder,
            program: std::env::current_exe()?,
            children: BTreeMap::new(),
            heard,
            lines,
            kept: Vec::new(),
            gone: VecDeque::new(),
            interrupted: BTreeSet::new(),
        })
    }

    /// Where the ledgers are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The boots that were interrupted so far.
    pub fn interrupted(&self) -> &BTreeSet<String> {
        &self.interrupted
    }

    /// Notes a boot as interrupted by other means than [`signal`](Self::signal).
    pub fn note_interrupted(&mut self, boot: &str) {
        self.interrupted.insert(boot.to_owned());
    }

    /// Starts a process under a name of its own; arguments are `<name>=<value>`.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(
        &mut self,
        part: &str,
        boot: &str,
        arguments: &[String],
        failpoint: Option<&str>,
    ) -> Result<()> {
        let log = self.folder().join(format!("{boot}.log"));
        let mut command = Command::new(&self.program);
        command
            .arg(part)
            .arg(format!("boot={boot}"))
            .arg(format!("url={}", self.place.url()))
            .arg(format!("folder={}", self.folder().display()))
            .args(arguments)
            .env_remove("QUEUE_FAILPOINT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true);
        if let Some(point) = failpoint {
            command.env("QUEUE_FAILPOINT", point);
        }
        let mut child = command.spawn().with_context(|| format!("start {boot}"))?;
        let output = child.stdout.take().context("a pipe")?;
        let input = child.stdin.take().context("a pipe")?;
        let (heard, name) = (self.heard.clone(), boot.to_owned());
        drop(tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = heard.send((name.clone(), Said::Line(line)));
            }
            let _ = heard.send((name, Said::Nothing));
        }));
        self.children
            .insert(boot.to_owned(), Process { child, input, log });
        Ok(())
    }

    /// Sends a signal to a process that was not waited for yet.
    ///
    /// # Errors
    /// If there is no such process.
    pub async fn signal(&mut self, boot: &str, signal: Signal) -> Result<()> {
        if matches!(signal, Signal::Kill | Signal::Stop) {
            self.note_interrupted(boot);
        }
        let process = self.children.get(boot).context("an unknown process")?;
        let Some(id) = process.child.id() else {
            return Ok(());
        };
        let name = match signal {
            Signal::Kill => "-KILL",
            Signal::Term => "-TERM",
            Signal::Stop => "-STOP",
            Signal::Cont => "-CONT",
        };
        let sent = Command::new("kill").args([name, &id.to_string()]).status();
        ensure!(sent.await?.success(), "kill {name} {boot}");
        Ok(())
    }

    /// Waits until a process that freezes itself at a point stands still.
    ///
    /// # Errors
    /// If it does not come there.
    pub async fn froze(&mut self, boot: &str) -> Result<()> {
        self.line(boot, "at ").await?;
        self.note_interrupted(boot);
        self.stands_still(boot).await
    }

    /// Waits until no thread of a process runs that was sent the signal to stop: until then another one
    /// of its threads may still take a lock.
    ///
    /// # Errors
    /// If there is no such process.
    pub async fn stands_still(&self, boot: &str) -> Result<()> {
        let process = self.children.get(boot).context("an unknown process")?;
        let Some(id) = process.child.id() else {
            return Ok(());
        };
        let mut looks = interval(LOOK_AGAIN);
        loop {
            looks.tick().await;
            let threads = std::fs::read_dir(format!("/proc/{id}/task"))?;
            let mut states = threads.flatten().map(|thread| {
                let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
                // The name in brackets may hold blanks.
                stat.rsplit(") ")
                    .next()
                    .and_then(|rest| rest.chars().next())
            });
            if states.all(|state| state.is_none_or(|state| state == 'T')) {
                return Ok(());
            }
        }
    }

    /// Writes a line to a process.
    ///
    /// # Errors
    /// If it does not listen any more.
    pub async fn tell(&mut self, boot: &str, line: &str) -> Result<()> {
        let process = self.children.get_mut(boot).context("an unknown process")?;
        Ok(process
            .input
            .write_all(format!("{line}\n").as_bytes())
            .await?)
    }

    /// Returns what a process has logged.
    pub fn log(&self, boot: &str) -> String {
        let log = self.children.get(boot).map(|process| process.log.clone());
        log.and_then(|log| std::fs::read_to_string(log).ok())
            .unwrap_or_default()
    }

    /// Hears the next thing that any process says, or that one has ended, within a span.
    pub async fn hear(&mut self, within: Duration) -> Option<(String, Option<String>)> {
        match self.gone.pop_front() {
            Some(boot) => Some((boot, None)),
            None => self.receive(within).await,
        }
    }

    async fn receive(&mut self, within: Duration) -> Option<(String, Option<String>)> {
        let (boot, said) = timeout(within, self.lines.recv()).await.ok()??;
        let said = match said {
            Said::Line(line) => {
                self.kept.push((boot.clone(), line.clone()));
                Some(line)
            }
            Said::Nothing => None,
        };
        Some((boot, said))
    }

    /// Waits until a process has said a line that begins so, and returns the line.
    ///
    /// # Errors
    /// If it ends before, or says nothing like it.
    pub async fn line(&mut self, boot: &str, start: &str) -> Result<String> {
        let is_it = |of: &str, line: &str| of == boot && line.starts_with(start);
        if let Some((_, line)) = self.kept.iter().find(|(of, line)| is_it(of, line)) {
            return Ok(line.clone());
        }
        let found = timeout(PATIENCE, async {
            while let Some((of, said)) = self.receive(PATIENCE).await {
                match said {
                    Some(line) if is_it(&of, &line) => return Some(line),
                    Some(_) => {}
                    None if of == boot => return None,
                    // Whoever hears next is told.
                    None => self.gone.push_back(of),
                }
            }
            None
        });
        match found.await {
            Ok(Some(line)) => Ok(line),
            _ => bail!("{boot} does not say {start:?}: {}", self.log(boot)),
        }
    }

    /// Whether a process has said a line that begins so, of those that were heard by now.
    pub fn has_said(&self, boot: &str, start: &str) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|(of, line)| of == boot && line.starts_with(start))
    }

    /// Waits until a process has ended, and forgets it.
    ///
    /// # Errors
    /// If it does not end.
    pub async fn ended(&mut self, boot: &str) -> Result<ExitStatus> {
        let process = self.children.get_mut(boot).context("an unknown process")?;
        match timeout(PATIENCE, process.child.wait()).await {
            Ok(status) => {
                let status = status?;
                self.children.remove(boot);
                Ok(status)
            }
            Err(_) => bail!("{boot} does not end: {}", self.log(boot)),
        }
    }

    /// Kills a process, and waits until it is gone.
    ///
    /// # Errors
    /// If it cannot be.
    pub async fn kill(&mut self, boot: &str) -> Result<()> {
        self.signal(boot, Signal::Kill).await?;
        self.ended(boot).await.map(drop)
    }

    /// Asks a process to stop, and sees it end well.
    ///
    /// # Errors
    /// If it does not.
    pub async fn stop(&mut self, boot: &str) -> Result<()> {
        self.line(boot, "ready").await?;
        self.signal(boot, Signal::Term).await?;
        let log = self.children.get(boot).map(|process| process.log.clone());
        let status = self.ended(boot).await?;
        ensure!(
            status.success(),
            "{boot} was asked to stop and ended with {status}: {}",
            log.and_then(|log| std::fs::read_to_string(log).ok())
                .unwrap_or_default()
        );
        Ok(())
    }

    /// Removes the world; what still runs is killed.
    ///
    /// # Errors
    /// If the store cannot be removed.
    pub async fn end(mut self) -> Result<()> {
        for process in self.children.values_mut() {
            // It may have ended by itself.
            let _ = process.child.kill().await;
        }
        self.place.end().await
    }
}
