//! What holds between processes: one key one job, a killed worker, and an exit code that tells.

use std::process::{Command, ExitStatus, Stdio};

use queue_runtime::error::StoreErrorKind;
use queue_runtime::{JobState, Queue, Worker, job};

use crate::world::{File, World, final_events};

/// Names the file that a child process works on, and what it does there.
const FILE: &str = "QUEUE_TEST_FILE";
const PART: &str = "QUEUE_TEST_PART";

/// Starts this test binary again to play one part.
pub(crate) fn child(part: &str, url: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test binary"));
    command.args(["--exact", "processes::plays_its_part", "--nocapture"]);
    command
        .env(PART, part)
        .env(FILE, url)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Not a test of its own: what a child process does. Alone it does nothing.
#[tokio::test]
#[expect(
    clippy::exit,
    reason = "a child process that plays a part ends with the part's code"
)]
async fn plays_its_part() {
    let (Ok(part), Ok(url)) = (std::env::var(PART), std::env::var(FILE)) else {
        return;
    };
    let ended = match part.as_str() {
        "enqueue" => enqueues_many(&url).await,
        "dies" => dies_while_running(&url).await,
        "from_env" => crate::environment::opens_what_is_named(&url).await,
        #[cfg(unix)]
        "signals" => crate::signals::works_until_a_signal(&url).await,
        "fatal" => meets_a_fatal_fault().await,
        other => panic!("no part {other}"),
    };
    std::process::exit(ended);
}

#[job(idempotency = "n")]
async fn numbered(n: u32) {
    let _ = n;
}

async fn enqueues_many(url: &str) -> i32 {
    let queue = Queue::open(url).await.expect("the file opens");
    for n in 0..50 {
        numbered::enqueue(&queue, n)
            .await
            .expect("enqueued or answered");
    }
    queue.close().await;
    0
}

#[tokio::test]
async fn two_processes_with_the_same_keys_make_each_job_once() {
    let file = File::new();
    let url = file.url();
    let mut children: Vec<_> = (0..3)
        .map(|_| child("enqueue", &url).spawn().expect("a process"))
        .collect();
    for child in &mut children {
        assert!(child.wait().expect("it ends").success());
    }

    let queue = file.open().await;
    assert_eq!(queue.counts().await.expect("it answers").total(), 50);
    queue.close().await;
}

#[job(timeout = "none", retries = 9)]
async fn takes_its_worker_down() {
    std::process::abort();
}

async fn dies_while_running(url: &str) -> i32 {
    let queue = Queue::open(url).await.expect("the file opens");
    let lease = std::time::Duration::from_millis(300);
    let worker = Worker::builder(&queue)
        .job::<TakesItsWorkerDownJob>()
        .lease(lease)
        .heartbeat(lease / 3)
        .rescue_every(lease / 10);
    worker
        .run_until(final_events(&queue, 1))
        .await
        .expect("ends well");
    0
}

#[tokio::test]
async fn a_job_that_aborts_its_process_each_time_ends_as_a_dead_letter() {
    let file = File::new();
    let queue = file.open().await;
    let sent = takes_its_worker_down::enqueue(&queue)
        .await
        .expect("enqueued");
    let status = |url: &str| -> ExitStatus { child("dies", url).status().expect("a process") };

    let deaths = (0..10)
        .take_while(|_| !status(&file.url()).success())
        .count();

    assert_eq!(deaths, 3);
    let job = queue
        .job(sent.id)
        .await
        .expect("it answers")
        .expect("it exists");
    assert_eq!(
        (job.state, job.attempts, job.crashes),
        (JobState::DeadLetter, 3, 3)
    );
    queue.close().await;
}

/// A program whose `main` returns the worker's error.
async fn meets_a_fatal_fault() -> i32 {
    let world = World::new();
    world
        .faults
        .fail_next_as(queue_testkit::Verb::Claim, 1, StoreErrorKind::Corrupt);
    let worker = Worker::builder(&world.queue).job::<NumberedJob>();
    match worker.run_until(std::future::pending()).await {
        Ok(()) => 0,
        Err(error) => {
            assert!(error.to_string().contains("worker loop"), "{error}");
            3
        }
    }
}

#[test]
fn a_fatal_fault_ends_the_process_with_a_code_that_is_not_zero() {
    let status = child("fatal", "unused").status().expect("a process");
    assert_eq!(status.code(), Some(3));
}
