//! Builds both releases, starts their processes, and waits for what they do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use queue_runtime::Queue;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{interval, timeout};
use xtask::programs::Build;

use crate::place::Place;
use crate::{AFTER, BEFORE, audit};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a file or at the store.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The programs of both releases, and the folder that their processes share.
pub(crate) struct Fleet<'p> {
    place: &'p Place,
    programs: BTreeMap<String, PathBuf>,
    folder: tempfile::TempDir,
}

/// A process of one release.
pub(crate) struct Process {
    what: String,
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
}

/// A line of the ledger: which job ran, of which type, in which release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) job_type: String,
    pub(crate) release: String,
}

impl<'p> Fleet<'p> {
    pub(crate) async fn new(place: &'p Place) -> Self {
        Self {
            place,
            programs: built(),
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, release: &str, role: &str, arguments: &[&str]) -> Process {
        let what = format!("{release} {role} {arguments:?}");
        let log = tempfile::NamedTempFile::new_in(self.folder.path()).expect("a file");
        let (file, log) = log.keep().expect("the folder goes away as a whole");
        let mut child = Command::new(&self.programs[release])
            .args([role, "--database-url", &self.place.url()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let output = child.stdout.take().expect("a pipe");
        let output = BufReader::new(output).lines();
        Process {
            what,
            child,
            output,
            log,
        }
    }

    pub(crate) async fn migrate(&self, release: &str) {
        self.start(release, "migrate", &[]).summary().await;
    }

    /// Starts a worker, and returns once it listens to signals.
    pub(crate) async fn worker(&self, release: &str) -> Process {
        let ledger = self.path("ledger");
        let ledger = ledger.to_str().expect("a plain name");
        let mut worker = self.start(release, "work", &["--ledger", ledger]);
        match worker.line().await.as_deref() {
            Some("ready") => worker,
            other => panic!("{}: {other:?}", worker.told()),
        }
    }

    pub(crate) fn producer(&self, release: &str, from: u32, count: u32) -> Process {
        let (from, count) = (from.to_string(), count.to_string());
        self.start(release, "produce", &["--from", &from, "--count", &count])
    }

    /// Starts a program that is expected to fail, and returns what it says.
    pub(crate) async fn refused(&self, release: &str, role: &str) -> String {
        let ledger = self.path("ledger");
        let ledger = ledger.to_str().expect("a plain name");
        let arguments = ["--from", "0", "--count", "1", "--ledger", ledger];
        let mut process = self.start(release, role, &arguments);
        assert!(!process.ended().await, "{}: did not fail", process.told());
        process.told()
    }

    /// What ran so far, in the order in which it was noted.
    pub(crate) fn ledger(&self) -> Vec<Run> {
        let text = std::fs::read_to_string(self.path("ledger")).unwrap_or_default();
        let run = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
            [id, job_type, release] => Run {
                id: id.to_owned(),
                job_type: job_type.to_owned(),
                release: release.to_owned(),
            },
            _ => panic!("{line:?} is no line of a ledger"),
        };
        text.lines().map(run).collect()
    }

    /// Waits until so many jobs ran.
    pub(crate) async fn ran(&self, jobs: usize) {
        let what = format!("{jobs} jobs run");
        eventually(&what, async || self.ledger().len() >= jobs).await;
    }

    /// Waits until no job waits that the workers of a release do not know.
    pub(crate) async fn knows_all(&self, queue: &Queue, release: &str) {
        let what = format!("{release} knows all that waits");
        eventually(&what, async || {
            audit::unknown(queue, release).await.is_empty()
        })
        .await;
    }

    /// Waits until only so many jobs wait and none runs.
    pub(crate) async fn waits(&self, queue: &Queue, jobs: u64) {
        let what = format!("{jobs} jobs wait");
        eventually(&what, async || {
            let counts = queue.counts().await.expect("the store answers");
            (counts.queued, counts.processing) == (jobs, 0)
        })
        .await;
    }
}

impl Process {
    async fn line(&mut self) -> Option<String> {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{}: says nothing", self.told()));
        line.expect("text")
    }

    /// What it is, and what it has logged.
    fn told(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        format!("{}: {log}", self.what)
    }

    /// Waits until it has ended, and says whether well.
    async fn ended(&mut self) -> bool {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("{}: does not end", self.told()));
        ended.expect("it can be waited for").success()
    }

    /// Waits for its end, which is good, and returns its last line.
    async fn summary(mut self) -> Value {
        let mut last = String::new();
        while let Some(line) = self.line().await {
            last = line;
        }
        assert!(self.ended().await, "{}: failed", self.told());
        serde_json::from_str(&last).expect("the last line is JSON")
    }

    /// Waits until a producer is through, and returns how many jobs it made.
    pub(crate) async fn accepted(self) -> u64 {
        let summary = self.summary().await;
        summary["accepted"].as_u64().expect("a number")
    }

    /// Waits until it has logged something.
    pub(crate) async fn says(&self, words: &str) {
        eventually(words, async || self.told().contains(words)).await;
    }

    /// Asks a worker to stop, waits until it has, and returns how many jobs it ran.
    pub(crate) async fn stop(self) -> u64 {
        let id = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.expect("the command `kill`").success());
        let summary = self.summary().await;
        summary["ran"].as_u64().expect("a number")
    }
}

async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let mut looks = interval(LOOK_AGAIN);
    let held = timeout(PATIENCE, async {
        while !holds().await {
            looks.tick().await;
        }
    });
    let held = held.await;
    assert!(held.is_ok(), "not within {PATIENCE:?}: {what}");
}

/// Builds both programs where this test was built, and returns where they are, by release.
fn built() -> BTreeMap<String, PathBuf> {
    let test = std::env::current_exe().expect("this test");
    let names = [BEFORE, AFTER].map(|release| format!("deploy-{release}"));
    let build = Build {
        names: &[&names[0], &names[1]],
        target: test.ancestors().nth(3),
        ..Build::default()
    };
    let programs = build.run().expect("both programs build");
    let release = |(name, path): (String, PathBuf)| {
        let release = name.strip_prefix("deploy-")?.to_owned();
        Some((release, path))
    };
    programs.into_iter().filter_map(release).collect()
}
