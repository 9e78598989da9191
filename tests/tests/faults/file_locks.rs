//! Several processes on one SQLite file: whose turn it is to write is not their users' business.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use queue_runtime::job::JobEvent;
use queue_runtime::{Data, JobState, Queue, Worker, job};
use queue_testkit::recorder::Recorder;

use crate::child::Child;
use crate::world::{World, seam};

on! { sqlite:
    real { o_115_six_processes_on_one_file_meet_no_lock_and_run_each_job_once }
}

/// Processes at once, and the jobs that each of them enqueues.
const PROCESSES: u64 = 6;
const EACH: u64 = 150;

struct Ledger(PathBuf);

/// Beside the file of the jobs.
fn ledger(url: &str) -> PathBuf {
    Path::new(url.trim_start_matches("sqlite://")).with_file_name("runs")
}

/// Notes its run where all processes can read it.
#[job(retries = 0)]
async fn is_shared(n: u64, ledger: Data<Ledger>) -> Result<(), std::io::Error> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&ledger.0)?;
    file.write_all(format!("{n}\n").as_bytes())
}

/// Enqueues a share one by one and works until nothing waits. A call that the store refused, or an
/// attempt that somebody else took over, ends the process with a code that is not zero.
pub(crate) async fn shares(queue: &Queue, url: &str, share: u64) {
    let recorder = Arc::new(Recorder::new(Arc::clone(queue.store()), seam()));
    let queue = Queue::on_store(recorder.clone(), seam());
    let mut events = queue.events();
    for n in share * EACH..(share + 1) * EACH {
        is_shared::enqueue(&queue, n).await.expect("no lock is met");
    }
    let worker = Worker::builder(&queue).job::<IsSharedJob>();
    let worker = worker.data(Ledger(ledger(url)));
    worker.run_until_empty().await.expect("no lock is met");
    while let Ok(event) = events.try_recv() {
        let is_lost = matches!(
            event,
            JobEvent::SettledStale { .. } | JobEvent::LeaseLost { .. }
        );
        assert!(!is_lost, "{event:?}");
    }
    let calls = recorder.calls();
    let refused = calls.iter().find(|call| call.answered.starts_with("error"));
    assert!(refused.is_none(), "{refused:?}");
}

/// Nine hundred jobs instead of minutes.
async fn o_115_six_processes_on_one_file_meet_no_lock_and_run_each_job_once(world: &World) {
    let queue = world.open().await;
    let share = |share| Child::start(&format!("shares {share}"), world).ended();
    let ended = join_all((0..PROCESSES).map(share)).await;
    assert!(ended.iter().all(|status| status.success()), "{ended:?}");

    let counts = queue.counts().await.expect("it answers");
    assert_eq!(counts.of(JobState::Done), PROCESSES * EACH);
    assert_eq!(counts.total(), PROCESSES * EACH);
    let runs = std::fs::read_to_string(ledger(&world.url())).expect("it was written");
    let mut runs: Vec<u64> = runs.lines().map(|n| n.parse().expect("a number")).collect();
    runs.sort_unstable();
    assert_eq!(runs, (0..PROCESSES * EACH).collect::<Vec<_>>());
}
