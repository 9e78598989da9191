//! Enqueue, decode, inject, call and classify, through a real worker on the memory store.

use std::sync::Mutex;

use queue_runtime::{Classify, Data, Job, JobContext, JobError, JobState, Queue, Worker, job};

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

/// Payload before and after the injected arguments, and one of them borrowed.
#[job(derive(Clone))]
async fn greet(name: &str, log: Data<Log>, #[arg(rename = "n")] times: u32, ctx: JobContext) -> Result<u32, JobError> {
    let mut lines = log.0.lock().expect("no handler panics");
    lines.push(format!("{name} {times} at attempt {}", ctx.attempt()));
    Ok(times)
}

#[derive(Debug, Classify)]
enum MailError {
    #[job(permanent)]
    NoSuchAddress,
}

impl std::fmt::Display for MailError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no such address")
    }
}

impl std::error::Error for MailError {}

#[job(retries = 9)]
async fn refuse() -> Result<(), MailError> {
    Err(MailError::NoSuchAddress)
}

fn never(error: &String) -> bool {
    assert_eq!(error, "hopeless");
    false
}

#[job(retries = 9, retry_if = never)]
async fn hopeless() -> Result<(), String> {
    Err("hopeless".to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let queue = Queue::in_memory();
    let greeted = greet::enqueue(&queue, "Ada", 2).await.expect("enqueue");
    let refused = refuse::enqueue(&queue).await.expect("enqueue");
    let given_up = queue.enqueue(HopelessJob {}).await.expect("enqueue");
    let jobs = [greeted.id, refused.id, given_up.id];

    let mut events = queue.events();
    let all_settled = async {
        let mut settled = 0;
        while settled < jobs.len() {
            let event = events.recv().await.expect("the queue is open");
            settled += usize::from(matches!(event, queue_runtime::job::JobEvent::Settled { .. }));
        }
    };
    let log = Data::new(Log::default());
    // No list of jobs: the worker finds what the attribute registered.
    let worker = Worker::builder(&queue).shared::<Log>(log.clone()).run_until(all_settled);
    worker.await.expect("the worker runs");

    assert_eq!(*log.0.lock().expect("no handler panicked"), ["Ada 2 at attempt 1"]);
    let mut states = Vec::new();
    for id in jobs {
        let record = queue.job(id).await.expect("the store answers").expect("it exists");
        states.push(record.state);
    }
    assert_eq!(states, [JobState::Done, JobState::DeadLetter, JobState::DeadLetter]);
    assert_eq!(GreetJob::DEF.payload_fields()[1].name, "n");
}
