//! What a worker says about waiting jobs that it does not run.

use std::time::Duration;

use queue_runtime::seam::Seam as _;
use queue_runtime::{Data, Job, Queue, Worker, WorkerBuilder, job};
use queue_testkit::Verb;
use tracing::Level;

use crate::logs::{Line, Log};
use crate::world::World;

#[job]
async fn known_here() {}

#[job]
async fn gone_from_here() {}

#[job]
async fn new_elsewhere() {}

#[job(name = "grows")]
async fn grows(small: u8) {
    let _ = small;
}

#[job(name = "grows", schema = 2)]
async fn has_grown(large: u64) {
    let _ = large;
}

#[job(queue = "elsewhere")]
async fn needs_a_number(number: Data<u64>) {
    let _ = number;
}

fn told(log: &Log) -> Vec<Line> {
    let mut lines = log.lines();
    lines.retain(|line| line.fields.contains_key("unread"));
    lines
}

fn unread(line: &Line) -> &str {
    &line.fields["unread"]
}

fn worker(queue: &Queue) -> WorkerBuilder {
    Worker::builder(queue)
        .queues(["default"])
        .job::<KnownHereJob>()
        .job::<GrowsJob>()
        .job::<NeedsANumberJob>()
}

async fn enqueue<J: Job>(world: &World, job: J) {
    world.queue.enqueue(job).await.expect("enqueued");
}

#[tokio::test]
async fn a_worker_says_at_its_start_which_waiting_jobs_it_does_not_run_and_why() {
    let world = World::new();
    let (log, _guard) = Log::start();
    enqueue(&world, GoneFromHereJob {}).await;
    enqueue(&world, GoneFromHereJob {}).await;
    enqueue(&world, HasGrownJob { large: 300 }).await;
    let moved = world.queue.enqueue(NeedsANumberJob {}).queue("default");
    moved.await.expect("enqueued");
    let known = world.queue.enqueue(KnownHereJob {}).await;
    let small = world.queue.enqueue(GrowsJob { small: 3 }).await;
    let run = [known.expect("enqueued").id, small.expect("enqueued").id];

    world.run(worker(&world.queue), &run).await;

    let lines = told(&log);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert_eq!(lines[0].level, Level::WARN);
    assert_eq!(
        unread(&lines[0]),
        "2 of gone_from_here with schema 1: no handler here; \
         1 of grows with schema 2: newer than schema 1, the highest that is read here; \
         1 of needs_a_number with schema 1: no `Data` here that its handler takes"
    );
    assert!(lines[0].message().contains("use my_jobs as _;"));
    let counts = world.queue.counts().await.expect("counted");
    assert_eq!((counts.queued, counts.done), (4, 2));
    let waiting = world.queue.waiting().await.expect("counted");
    let waiting: Vec<_> = waiting
        .iter()
        .map(|row| (row.job_type.as_str(), row.payload_schema, row.queued))
        .collect();
    let expected = [
        ("gone_from_here", 1, 2),
        ("grows", 2, 1),
        ("needs_a_number", 1, 1),
    ];
    assert_eq!(waiting, expected);
}

/// Runs a worker on and on; the rounds of looking are counted by their calls.
async fn rounds(world: &World, each: impl AsyncFn(usize)) {
    const EVERY: Duration = Duration::from_mins(10);
    let started = world.seam.elapsed();
    let acted = std::cell::Cell::new(0);
    let done = async || {
        let round = acted.get();
        if world.faults.calls(Verb::Unread) > round {
            acted.set(round + 1);
            each(round).await;
        }
        acted.get() == 6
    };
    let worker = worker(&world.queue).prune_every(EVERY).poll(EVERY);
    world.run_until(worker, done).await.expect("it ends well");
    let took = world.seam.elapsed() - started;
    assert!(took >= EVERY * 4, "six looks in {took:?}");
}

#[tokio::test]
async fn the_same_unread_jobs_are_told_of_once() {
    let world = World::new();
    let (log, _guard) = Log::start();
    enqueue(&world, GoneFromHereJob {}).await;

    rounds(&world, async |_| enqueue(&world, GoneFromHereJob {}).await).await;

    let lines = told(&log);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(unread(&lines[0]).starts_with("1 of gone_from_here"));
}

#[tokio::test]
async fn a_type_that_appears_while_the_worker_runs_is_told_of_at_the_next_look() {
    let world = World::new();
    let (log, _guard) = Log::start();

    rounds(&world, async |round| match round {
        1 => enqueue(&world, HasGrownJob { large: 300 }).await,
        3 => enqueue(&world, NewElsewhereJob {}).await,
        _ => {}
    })
    .await;

    let lines = told(&log);
    let unread: Vec<_> = lines.iter().map(unread).collect();
    let grown = "1 of grows with schema 2: newer than schema 1, the highest that is read here";
    let both = format!("{grown}; 1 of new_elsewhere with schema 1: no handler here");
    assert_eq!(unread, [grown, both.as_str()]);
}

#[tokio::test]
async fn a_worker_that_reads_everything_says_nothing() {
    let world = World::new();
    let (log, _guard) = Log::start();
    let sent = world.queue.enqueue(KnownHereJob {}).await;

    world
        .run(worker(&world.queue), &[sent.expect("enqueued").id])
        .await;

    assert_eq!(told(&log), []);
}

#[tokio::test]
async fn jobs_in_queues_that_a_worker_does_not_serve_are_no_concern_of_it() {
    let world = World::new();
    let (log, _guard) = Log::start();
    let elsewhere = [
        world
            .queue
            .enqueue(GoneFromHereJob {})
            .queue("elsewhere")
            .await,
        world
            .queue
            .enqueue(HasGrownJob { large: 300 })
            .queue("elsewhere")
            .await,
        world.queue.enqueue(NeedsANumberJob {}).await,
    ];
    let sent = world.queue.enqueue(KnownHereJob {}).await;

    world
        .run(worker(&world.queue), &[sent.expect("enqueued").id])
        .await;

    assert_eq!(told(&log), []);
    let counts = world.queue.counts().await.expect("counted");
    assert_eq!(counts.queued, elsewhere.len() as u64);
}
