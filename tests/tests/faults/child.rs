//! A process of its own that plays one part of a scenario, and is killed at a moment that the
//! scenario names.
#![expect(
    clippy::print_stdout,
    reason = "what a child says is what the scenario waits for"
)]

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::poll;
use queue_runtime::{Data, JobContext, Queue, Worker, WorkerBuilder, job, shutdown_signal};
use queue_testkit::Verb;
use queue_testkit::faulty::Faulty;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{self, ChildStdout, Command};

use crate::world::{World, finals, open_at, seam};

const PART: &str = "QUEUE_FAULTS_PART";
const URL: &str = "QUEUE_FAULTS_URL";

/// Short: what a killed process held is taken over after it.
const LEASE: Duration = Duration::from_millis(900);

/// Not a test of its own: what a child process does. Alone it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::exit,
    reason = "a child process that plays a part ends with the part's code"
)]
async fn plays_its_part() {
    let (Ok(part), Ok(url)) = (std::env::var(PART), std::env::var(URL)) else {
        return;
    };
    println!("opening");
    let queue = open_at(&url).await.expect("it opens");
    match part.split_once(' ').unwrap_or((part.as_str(), "")) {
        ("opens", _) => {}
        ("takes", _) => takes(&queue).await,
        ("holds", _) => holds(&queue).await,
        ("dies", _) => dies(&queue).await,
        ("shares", n) => {
            let share = n.parse().expect("a number");
            crate::file_locks::shares(&queue, &url, share).await;
        }
        _ => panic!("no part {part}"),
    }
    queue.close().await;
    std::process::exit(0);
}

/// Configures a worker whose jobs are soon taken over when it is killed.
pub(crate) fn worker(queue: &Queue) -> WorkerBuilder {
    Worker::builder(queue)
        .lease(LEASE)
        .heartbeat(LEASE / 6)
        .rescue_every(LEASE / 10)
}

/// A job whose worker is killed around its start.
#[job(retries = 9)]
pub(crate) async fn survives() {}

/// Claims what there is, and never comes to the first line of a handler.
async fn takes(queue: &Queue) {
    let faults = Faulty::new(Arc::clone(queue.store()));
    let queue = Queue::on_store(Arc::new(faults.clone()), seam());
    for verb in [Verb::Claim, Verb::Exchange] {
        faults.hold_reply(verb);
    }
    let taken = async {
        tokio::select! {
            () = faults.held_reach(Verb::Claim, 1) => {}
            () = faults.held_reach(Verb::Exchange, 1) => {}
        }
        println!("taken");
        std::future::pending().await
    };
    let worker = worker(&queue).job::<SurvivesJob>().concurrency(20);
    worker.run_until(taken).await.expect("never ends");
}

/// A job of one user that is under way when its worker is killed.
#[job(timeout = "none", dedupe = "user", retries = 9)]
pub(crate) async fn is_under_way(user: u64, ctx: JobContext) {
    let _ = user;
    if ctx.attempt() == 1 {
        println!("running");
        std::future::pending::<()>().await;
    }
}

/// A job that may be tried once; holds on to its attempt if it is told to.
#[job(timeout = "none", retries = 0)]
pub(crate) async fn has_one_attempt(holds: Data<bool>) {
    if *holds {
        println!("running");
        std::future::pending::<()>().await;
    }
}

async fn holds(queue: &Queue) {
    let worker = worker(queue)
        .job::<IsUnderWayJob>()
        .job::<HasOneAttemptJob>()
        .data(true)
        .grace(Duration::ZERO);
    // Polled before anything runs, so that the signal is heard whenever it comes.
    let mut told = Box::pin(shutdown_signal());
    let not_yet = poll!(&mut told);
    assert!(not_yet.is_pending());
    worker.run_until(told).await.expect("ends well");
}

/// Takes its process down in the first attempt, and is killed from outside in the second.
#[job(timeout = "none", retries = 9)]
pub(crate) async fn takes_its_process_down(ctx: JobContext) {
    match ctx.attempt() {
        1 => std::process::abort(),
        2 => {
            let me = std::process::id().to_string();
            let sent = std::process::Command::new("kill")
                .args(["-9", &me])
                .status();
            unreachable!("alive after {sent:?}");
        }
        _ => {}
    }
}

/// Needs more stack than there is, which no handler survives.
#[job(timeout = "none", retries = 9, backoff = "fixed(1ms)")]
pub(crate) async fn runs_out_of_stack() {
    deeper(std::hint::black_box(u64::MAX));
}

fn deeper(left: u64) -> u64 {
    match left {
        0 => 0,
        left => std::hint::black_box(deeper(left - 1)) + 1,
    }
}

async fn dies(queue: &Queue) {
    let worker = worker(queue)
        .job::<TakesItsProcessDownJob>()
        .job::<RunsOutOfStackJob>();
    let ended = worker.run_until(finals(&[queue], 1)).await;
    ended.expect("ends well");
}

/// A process that was started.
pub(crate) struct Child {
    process: process::Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts a process that plays a part on the world's store.
    pub(crate) fn start(part: &str, world: &World) -> Self {
        Self::start_at(part, &world.url())
    }

    /// Starts a process that plays a part on the store of an address.
    pub(crate) fn start_at(part: &str, url: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this test binary"))
            .args(["--exact", "child::plays_its_part", "--nocapture"])
            .env(PART, part)
            .env(URL, url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let output = process.stdout.take().expect("a pipe");
        let lines = BufReader::new(output).lines();
        Self { process, lines }
    }

    /// Waits until it says something, which is the last word of a line.
    pub(crate) async fn says(&mut self, what: &str) {
        while let Some(line) = self.lines.next_line().await.expect("text") {
            // The first word comes on the line that the test runner has begun.
            if line.ends_with(what) {
                return;
            }
        }
        panic!("the process has ended and not said {what}");
    }

    /// Says whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().is_ok_and(|ended| ended.is_some())
    }

    /// Kills it as `kill -9` does.
    pub(crate) async fn kill(mut self) {
        if !self.has_ended() {
            self.process.kill().await.expect("it can be killed");
        }
    }

    /// Asks it to end, as a deploy does.
    pub(crate) async fn stop(self) -> ExitStatus {
        let id = self.process.id().expect("it runs").to_string();
        let sent = std::process::Command::new("kill")
            .args(["-TERM", &id])
            .status();
        assert!(sent.expect("the command `kill`").success());
        self.ended().await
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        self.process.wait().await.expect("it can be waited for")
    }
}
