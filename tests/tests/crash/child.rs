//! What the child processes do: produce, work, and hold on to a job.
#![expect(
    clippy::print_stdout,
    reason = "what a child says is what the rig waits for"
)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use queue_runtime::job::JobEvent;
use queue_runtime::{
    Data, JobContext, JobError, Queue, Worker, WorkerBuilder, job, shutdown_signal,
};

/// Names the part that a child process plays, and the folder that all of them share.
pub(crate) const PART: &str = "QUEUE_CRASH_PART";
pub(crate) const FOLDER: &str = "QUEUE_CRASH_FOLDER";

/// Short, so that a run with many faults stays short.
const LEASE: Duration = Duration::from_millis(900);

/// Not a test of its own: what a child process does. Alone it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::exit,
    reason = "a child process that plays a part ends with the part's code"
)]
async fn plays_its_part() {
    let (Ok(part), Some(folder)) = (std::env::var(PART), std::env::var_os(FOLDER)) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let url = format!("sqlite://{}", folder.join("jobs.db").display());
    let queue = Queue::open(url).await.expect("the file opens");
    let ended = match part.as_str() {
        "produce" => produce(&queue, &folder.join("accepted")).await,
        "work" => work(&queue, Data::new(Ledger::new(folder.join("effects")))).await,
        "hold" => hold(&queue, Folder(folder)).await,
        other => panic!("no part {other}"),
    };
    std::process::exit(ended);
}

/// A file that processes append whole lines to, one write each.
pub(crate) struct Ledger(PathBuf);

impl Ledger {
    fn new(path: PathBuf) -> Self {
        Self(path)
    }

    fn append(&self, line: &str) -> std::io::Result<File> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file)
    }
}

/// Makes the requests up to each number that it reads, whichever of them a producer before it has
/// made, and notes what was accepted once it is.
async fn produce(queue: &Queue, accepted: &Path) -> i32 {
    let ledger = Ledger::new(accepted.to_owned());
    let mut n = 0;
    for line in std::io::stdin().lines() {
        let until: u64 = line.expect("text").parse().expect("a number");
        while n < until {
            // After an error it is unknown whether it was stored: the key makes another try safe.
            if let Ok(sent) = takes_effect::enqueue(queue, n).await {
                ledger.append(&format!("{n} {}", sent.id)).expect("noted");
                n += 1;
            }
        }
    }
    queue.close().await;
    0
}

/// Of ten jobs one fails once, one fails for good, and one has a follow-up.
#[job(
    idempotency = "n",
    retries = 100,
    backoff = "fixed(20ms)",
    timeout = "10s"
)]
async fn takes_effect(n: u64, ctx: JobContext, ledger: Data<Ledger>) -> Result<(), JobError> {
    if n % 10 == 3 && ctx.attempt() == 1 {
        return Err(JobError::retry("fails once"));
    }
    if n % 10 == 7 {
        return Err(JobError::permanent("fails for good"));
    }
    let (id, token) = (ctx.job_id(), ctx.fence());
    let file = ledger.append(&format!("{id} {token}"))?;
    println!("effect {id}");
    file.sync_data()?;
    tokio::task::yield_now().await;
    if n % 10 == 5 {
        follows::enqueue(&ctx, n).await?;
    }
    Ok(())
}

#[job(idempotency = "n", retries = 100)]
async fn follows(n: u64) {
    let _ = n;
}

fn worker(queue: &Queue) -> WorkerBuilder {
    Worker::builder(queue)
        .lease(LEASE)
        .heartbeat(LEASE / 4)
        .rescue_every(LEASE / 4)
        .crashes_max(100)
}

/// Works until it is told to stop.
async fn work(queue: &Queue, ledger: Data<Ledger>) -> i32 {
    speak(queue);
    let worker = worker(queue)
        .job::<TakesEffectJob>()
        .job::<FollowsJob>()
        .shared(ledger)
        .concurrency(8);
    ended(worker.run_until(told_to_stop()).await)
}

/// Where a held job looks for the file that lets it go.
pub(crate) struct Folder(PathBuf);

/// Holds on to its job in the first attempt: until it is let go, or for ever.
#[job(retries = 5, timeout = "none")]
pub(crate) async fn holds_on(until_let_go: bool, ctx: JobContext, folder: Data<Folder>) {
    let token = ctx.fence();
    if ctx.attempt() > 1 {
        return;
    }
    let _dropped = Dropped(token.to_string());
    println!("holding {token}");
    while !until_let_go || !folder.0.join("go").exists() {
        tokio::task::yield_now().await;
    }
    println!("let go {token}");
}

struct Dropped(String);

impl Drop for Dropped {
    fn drop(&mut self) {
        println!("dropped {}", self.0);
    }
}

async fn hold(queue: &Queue, folder: Folder) -> i32 {
    speak(queue);
    let worker = worker(queue).job::<HoldsOnJob>().data(folder);
    ended(worker.run_until(told_to_stop()).await)
}

/// Waits for the signal, and says so once it would be heard.
async fn told_to_stop() {
    let say_so = async {
        println!("ready");
        std::future::pending().await
    };
    tokio::select! {
        biased;
        () = shutdown_signal() => {}
        () = say_so => {}
    }
}

fn ended(result: Result<(), queue_runtime::WorkerError>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            println!("failed {error}");
            1
        }
    }
}

/// Prints what this process's worker is told by the store.
fn speak(queue: &Queue) {
    let mut events = queue.events();
    drop(tokio::spawn(async move {
        while let Ok(event) = events.recv().await {
            match event {
                JobEvent::Rescued { id, worker, .. } => println!("rescued {id} {worker}"),
                JobEvent::LeaseLost { token, .. } => println!("refused {token}"),
                JobEvent::SettledStale { token, .. } => println!("refused {token}"),
                JobEvent::Settled { state, token, .. } if state.is_final() => {
                    println!("final {token}");
                }
                _ => {}
            }
        }
    }));
}
