//! Real signals to a real process: the first lets running jobs finish, the second does not.
#![cfg(unix)]

use std::io::Write;
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use queue_runtime::job::OutcomeKind;
use queue_runtime::{Data, JobState, Queue, Worker, job};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;

use crate::processes::child;
use crate::world::File;

/// Whether the worker still claims, as its handlers see it.
type Ready = OnceLock<watch::Receiver<bool>>;

/// Tells the parent process how far the child is.
fn tell(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word}").expect("the parent listens");
    out.flush().expect("the parent listens");
}

/// Waits for a word from the parent process.
async fn hears(word: &'static str) {
    let heard = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).expect("a pipe");
        assert_eq!(line.trim(), word);
    });
    heard.await.expect("the parent says it");
}

#[job(timeout = "none", retries = 0)]
async fn works_until_asked_to_stop(finishes: bool, ready: Data<Ready>) {
    tell("started");
    let mut ready = ready.get().expect("set before the worker runs").clone();
    let stopping = ready.wait_for(|ready| !ready).await.is_ok();
    assert!(stopping, "the worker tells before it ends");
    tell("stopping");
    match finishes {
        true => hears("finish").await,
        false => std::future::pending().await,
    }
}

/// What a child process does: a worker program whose `main` returns what `run` returns.
pub(crate) async fn works_until_a_signal(url: &str) -> i32 {
    let queue = Queue::open(url).await.expect("the file opens");
    let ready = Data::new(Ready::new());
    let worker = Worker::builder(&queue)
        .job::<WorksUntilAskedToStopJob>()
        .shared(ready.clone())
        .grace(Duration::from_hours(1))
        .build()
        .expect("it fits");
    ready.set(worker.ready()).expect("set once");
    let ended = worker.run().await;
    queue.close().await;
    i32::from(ended.is_err())
}

/// A worker process and what it has told.
struct Program {
    child: Child,
    told: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(url: &str) -> Self {
        let mut command = child("signals", url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let stdout = child.stdout.take().expect("it is piped");
        let told = BufReader::new(stdout).lines();
        Self { child, told }
    }

    /// Waits until the program has told this word, behind what the test harness prints.
    async fn tells(&mut self, word: &str) {
        while let Some(line) = self.told.next_line().await.expect("a pipe") {
            if line.ends_with(word) {
                return;
            }
        }
        panic!("it ended before it told {word:?}");
    }

    async fn is_told(&mut self, word: &str) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        let line = format!("{word}\n");
        stdin.write_all(line.as_bytes()).await.expect("it listens");
    }

    async fn is_sent(&self, signal: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let kill = Command::new("kill").args([signal, &id]).status().await;
        assert!(kill.expect("a process").success());
    }

    /// Far less than its grace.
    async fn ends(mut self) -> ExitStatus {
        let minute = Duration::from_mins(1);
        let ended = tokio::time::timeout(minute, self.child.wait()).await;
        ended.expect("it ends soon").expect("a process")
    }
}

#[tokio::test]
async fn a_program_that_is_told_to_end_finishes_its_job_and_exits_with_zero() {
    finishes_and_exits_after("-TERM").await;
}

#[tokio::test]
async fn a_program_that_is_interrupted_finishes_its_job_and_exits_with_zero() {
    finishes_and_exits_after("-INT").await;
}

async fn finishes_and_exits_after(signal: &str) {
    let file = File::new();
    let queue = file.open().await;
    let sent = works_until_asked_to_stop::enqueue(&queue, true)
        .await
        .expect("enqueued");
    let mut program = Program::start(&file.url());
    program.tells("started").await;
    let waits = works_until_asked_to_stop::enqueue(&queue, true)
        .delay(Duration::from_hours(1))
        .await
        .expect("enqueued");

    program.is_sent(signal).await;
    program.tells("stopping").await;
    program.is_told("finish").await;
    assert_eq!(program.ends().await.code(), Some(0));

    let job = queue.job(sent.id).await.expect("it answers");
    let job = job.expect("it exists");
    assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    let other = queue.job(waits.id).await.expect("it answers");
    assert_eq!(other.expect("it exists").state, JobState::Queued);
    queue.close().await;
}

#[tokio::test]
async fn a_second_signal_stops_the_job_and_hands_it_back() {
    let file = File::new();
    let queue = file.open().await;
    let sent = works_until_asked_to_stop::enqueue(&queue, false)
        .await
        .expect("enqueued");
    let mut program = Program::start(&file.url());
    program.tells("started").await;

    program.is_sent("-TERM").await;
    program.tells("stopping").await;
    program.is_sent("-INT").await;
    assert_eq!(program.ends().await.code(), Some(0));

    let job = queue.job(sent.id).await.expect("it answers");
    let job = job.expect("it exists");
    assert_eq!(
        (job.state, job.attempts, job.last_outcome),
        (JobState::Queued, 0, Some(OutcomeKind::HandedBack))
    );
    queue.close().await;
}
