//! What is checked before a worker starts, all at once and in words that say what to write.

use std::time::Duration;

use queue_runtime::{BuildError, Data, Queue, Worker, WorkerBuilder, job};

struct Mailer;
struct Pool;

#[job(queue = "mail")]
async fn mails(_mailer: Data<Mailer>, _pool: Data<Pool>) {}

#[job(queue = "billing")]
async fn bills(_pool: Data<Pool>) {}

#[job(name = "mails")]
async fn mails_too() {}

fn faults(worker: WorkerBuilder) -> Vec<String> {
    let BuildError { faults } = worker.build().expect_err("a fault");
    faults
}

fn worker() -> WorkerBuilder {
    Worker::builder(&Queue::in_memory())
        .job::<MailsJob>()
        .data(Mailer)
        .data(Pool)
}

#[tokio::test]
async fn every_missing_state_is_told_at_once() {
    let bare = Worker::builder(&Queue::in_memory())
        .job::<MailsJob>()
        .job::<BillsJob>();
    let faults = faults(bare);
    assert_eq!(faults.len(), 3, "{faults:#?}");
    assert!(
        faults[0].starts_with("job `bills` (tests/tests/it/building.rs:"),
        "{}",
        faults[0]
    );
    assert!(faults[1].contains("needs `it::building::Mailer` for argument `_mailer`"));
    assert!(faults[2].contains("add `.data(..)` with a `it::building::Pool`"));
}

#[tokio::test]
async fn a_worker_needs_only_the_state_of_the_queues_it_serves() {
    let mail_only = worker().job::<BillsJob>().queues(["mail"]).build();
    assert!(mail_only.is_ok());
    let billing = Worker::builder(&Queue::in_memory())
        .job::<MailsJob>()
        .job::<BillsJob>()
        .data(Pool)
        .queues(["billing"])
        .build();
    assert!(billing.is_ok());
}

#[tokio::test]
async fn two_jobs_of_one_name_are_refused_with_both_places() {
    let faults = faults(worker().job::<MailsTooJob>());
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].starts_with("two jobs are named `mails`: "),
        "{}",
        faults[0]
    );
    assert_eq!(faults[0].matches("building.rs:").count(), 2);
}

#[tokio::test]
async fn numbers_that_do_not_fit_are_refused_with_both_of_them() {
    let second = Duration::from_secs(1);
    let check = |worker: WorkerBuilder, expected: &str| {
        let faults = faults(worker);
        assert_eq!(faults.len(), 1, "{faults:#?}");
        assert!(faults[0].starts_with(expected), "{}", faults[0]);
    };
    check(
        worker().lease(second * 29).heartbeat(second * 10),
        "lease 29s is shorter than three",
    );
    check(
        worker().heartbeat(Duration::from_nanos(1)),
        "heartbeat 1ns: must be at least 10ms",
    );
    check(
        worker().lease(second * 86_400 * 30),
        "lease 2592000s: must be from",
    );
    check(
        worker().heartbeat(Duration::ZERO),
        "heartbeat 0ns: must be at least 10ms",
    );
    check(
        worker().concurrency(0),
        "concurrency 0: must be from 1 to 100000",
    );
    check(worker().concurrency(100_001), "concurrency 100001: must be");
    check(worker().poll(Duration::ZERO), "poll 0ns: must be from 1ms");
    check(
        worker().rescue_every(Duration::ZERO),
        "rescue_every 0ns: must be",
    );
    check(
        worker().grace(second * 10_000),
        "grace 10000s: must be at most",
    );
    check(worker().crashes_max(0), "crashes_max 0: must be at least 1");
    check(
        worker().queues(Vec::<String>::new()),
        "queues: an empty list serves nothing",
    );
    check(worker().queues(["Mail"]), "queue name \"Mail\": must be of");
    check(worker().name("my worker"), "worker id \"my worker@");
}

#[tokio::test]
async fn a_required_job_that_is_not_listed_is_told() {
    let faults = faults(worker().require::<BillsJob>());
    assert_eq!(faults.len(), 1);
    let (begin, end) = faults[0].split_once(") ").expect("the place is told");
    assert!(begin.starts_with("job `bills` ("), "{begin}");
    assert_eq!(
        end,
        format!(
            "is required but not registered: this worker runs the jobs that are listed, so list it \
             with `.job::<{}>()`",
            std::any::type_name::<BillsJob>()
        )
    );
}

#[tokio::test]
async fn faults_are_told_together_and_as_one_message() {
    let error = worker()
        .concurrency(0)
        .poll(Duration::ZERO)
        .build()
        .expect_err("two faults");
    let lines: Vec<_> = error.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], "the worker cannot start:");
}

#[tokio::test]
async fn a_message_with_thousands_of_faults_stays_readable() {
    let names: Vec<_> = (0..10_000).map(|n| format!("Queue {n}")).collect();
    let error = worker()
        .queues(names)
        .build()
        .expect_err("ten thousand faults");
    assert_eq!(error.faults.len(), 10_000);
    let text = error.to_string();
    assert!(
        text.lines().count() == 22 && text.ends_with("and 9980 more"),
        "{}",
        text.len()
    );
}

#[tokio::test]
async fn a_job_sent_to_a_queue_whose_worker_lacks_its_state_waits_for_another() {
    let world = crate::world::World::new();
    let sent = mails::enqueue(&world.queue)
        .queue("default")
        .await
        .expect("enqueued");
    let lacking = Worker::builder(&world.queue)
        .job::<MailsJob>()
        .job::<MailsTooElsewhereJob>()
        .queues(["default"]);
    let other = mails_too_elsewhere::enqueue(&world.queue)
        .await
        .expect("enqueued");
    world.run(lacking, &[other.id]).await;
    let waiting = world.job(sent.id).await;
    assert_eq!(
        (waiting.state, waiting.attempts),
        (queue_runtime::JobState::Queued, 0)
    );

    let able = Worker::builder(&world.queue)
        .job::<MailsJob>()
        .queues(["default"])
        .data(Mailer)
        .data(Pool);
    world.run(able, &[sent.id]).await;
}

#[job]
async fn mails_too_elsewhere() {}

#[tokio::test]
async fn two_workers_of_one_name_have_ids_of_their_own() {
    let queue = Queue::in_memory();
    let built = || {
        let worker = Worker::builder(&queue).name("mail").job::<MailsTooJob>();
        worker.build().expect("it fits").id().to_string()
    };
    let (one, other) = (built(), built());

    assert!(one.starts_with("mail@") && other.starts_with("mail@"));
    assert_ne!(one, other);
}
