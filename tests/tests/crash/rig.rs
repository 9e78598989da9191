//! Starts, kills and freezes child processes, and hears what they print.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use queue_runtime::{JobState, Queue};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::child::{FOLDER, PART};

/// Longer than anything here takes: a lease, a rescue, a busy database.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a frozen process is left alone if nobody can rescue its jobs meanwhile: it may hold
/// none, or the database's lock.
const FROZEN_MAX: Duration = Duration::from_secs(2);

/// What a test waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A job was taken from a worker that does not answer.
    Rescue,
    /// A line that starts with this, from this process.
    Line(usize, String),
}

/// The processes and the folder that they share.
pub(crate) struct Rig {
    folder: tempfile::TempDir,
    children: Vec<(String, Child)>,
    lines: mpsc::UnboundedReceiver<(usize, String)>,
    heard: mpsc::UnboundedSender<(usize, String)>,
    /// The processes that have said that they listen to signals.
    ready: BTreeSet<usize>,
    /// How many requests the producer may have made by now.
    supplied: u64,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let (heard, lines) = mpsc::unbounded_channel();
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            children: Vec::new(),
            lines,
            heard,
            ready: BTreeSet::new(),
            supplied: 0,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) async fn open(&self) -> Queue {
        let url = format!("sqlite://{}", self.path("jobs.db").display());
        Queue::open(url).await.expect("the file opens")
    }

    /// Starts a process for a part, and returns its place.
    pub(crate) fn start(&mut self, part: &str) -> usize {
        let place = self.children.len();
        let child = self.spawn(place, part);
        self.children.push((part.to_owned(), child));
        place
    }

    fn spawn(&self, place: usize, part: &str) -> Child {
        let mut child = Command::new(std::env::current_exe().expect("this test binary"))
            .args(["--exact", "child::plays_its_part", "--nocapture"])
            .env(PART, part)
            .env(FOLDER, self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let output = child.stdout.take().expect("a pipe");
        let heard = self.heard.clone();
        drop(tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = heard.send((place, line));
            }
        }));
        child
    }

    pub(crate) async fn kill_and_start_again(&mut self, place: usize) {
        let part = self.children[place].0.clone();
        self.children[place].1.kill().await.expect("it is killed");
        self.ready.remove(&place);
        self.children[place].1 = self.spawn(place, &part);
        if part == "produce" {
            self.supply(0).await;
        }
    }

    /// Lets the producer, which is the first process, make so many requests more.
    pub(crate) async fn supply(&mut self, requests: u64) {
        self.supplied += requests;
        let until = format!("{}\n", self.supplied);
        let input = self.children[0].1.stdin.as_mut().expect("a pipe");
        input
            .write_all(until.as_bytes())
            .await
            .expect("the producer listens");
    }

    pub(crate) fn freeze(&self, place: usize) {
        self.signal(place, "-STOP");
    }

    /// Freezes a process at a moment at which it does not hold the database's lock.
    pub(crate) async fn freeze_without_lock(&self, place: usize) {
        // Far less than a lease, so that a process that is thawed at once has lost nothing.
        let options = SqliteConnectOptions::new()
            .filename(self.path("jobs.db"))
            .busy_timeout(Duration::from_millis(50));
        let mut conn = options.connect().await.expect("the file opens");
        loop {
            self.freeze(place);
            if conn.execute("begin immediate").await.is_ok() {
                break;
            }
            self.thaw(place);
        }
        conn.close().await.expect("it closes");
    }

    pub(crate) fn thaw(&self, place: usize) {
        self.signal(place, "-CONT");
    }

    fn signal(&self, place: usize, name: &str) {
        let Some(id) = self.children[place].1.id() else {
            return;
        };
        let sent = std::process::Command::new("kill")
            .args([name, &id.to_string()])
            .status();
        assert!(sent.expect("the command `kill`").success());
    }

    /// Hears the next line of any process; `None` if it does not come soon enough.
    async fn next(&mut self, patience: Duration) -> Option<(usize, String)> {
        let (place, line) = timeout(patience, self.lines.recv()).await.ok()??;
        if line == "ready" {
            self.ready.insert(place);
        }
        Some((place, line))
    }

    /// Waits for so many effects.
    pub(crate) async fn wait_for_effects(&mut self, mut effects: usize) {
        while effects > 0 {
            let heard = self.next(PATIENCE).await;
            let (_, line) = heard.expect("there is work left, and it goes on");
            effects -= usize::from(line.starts_with("effect "));
        }
    }

    /// Waits for a line, and returns it; `None` for a rescue that did not come.
    pub(crate) async fn wait(&mut self, wanted: &Wait) -> Option<String> {
        let patience = match wanted {
            Wait::Rescue => FROZEN_MAX,
            Wait::Line(..) => PATIENCE,
        };
        let heard = timeout(patience, async {
            loop {
                let (place, line) = self.next(patience).await?;
                let found = match wanted {
                    Wait::Rescue => line.starts_with("rescued "),
                    Wait::Line(of, start) => place == *of && line.starts_with(start),
                };
                if found {
                    return Some(line);
                }
            }
        });
        let found = heard.await.ok().flatten();
        assert!(
            found.is_some() || *wanted == Wait::Rescue,
            "{wanted:?} did not come within {PATIENCE:?}"
        );
        found
    }

    /// Waits until the producer has all of its answers and every job is final.
    pub(crate) async fn wait_until_all_is_final(&mut self) {
        drop(self.children[0].1.stdin.take());
        let ended = timeout(PATIENCE, self.children[0].1.wait()).await;
        let ended = ended
            .expect("the producer ends")
            .expect("it can be waited for");
        assert!(ended.success(), "the producer failed: {ended}");
        let queue = self.open().await;
        let drained = timeout(PATIENCE, async {
            loop {
                let counts = queue.counts().await.expect("it answers");
                if counts.of(JobState::Queued) + counts.of(JobState::Processing) == 0 {
                    return;
                }
                // Whatever a worker says may have been the last thing to happen; a worker that
                // was killed said nothing.
                let _ = self.next(FROZEN_MAX / 10).await;
            }
        });
        drained
            .await
            .expect("everything due is final soon after the last fault");
        queue.close().await;
    }

    /// Asks the workers from a place on to stop, and sees them end well.
    pub(crate) async fn stop_workers_from(&mut self, first: usize) {
        for place in first..self.children.len() {
            self.stop(place).await;
        }
    }

    async fn stop(&mut self, place: usize) {
        while !self.ready.contains(&place) {
            let heard = self.next(PATIENCE).await;
            assert!(heard.is_some(), "worker {place} does not become ready");
        }
        self.signal(place, "-TERM");
        let ended = timeout(PATIENCE, self.children[place].1.wait()).await;
        let ended = ended
            .expect("a worker stops")
            .expect("it can be waited for");
        assert!(ended.success(), "a worker that was asked to stop: {ended}");
    }
}
