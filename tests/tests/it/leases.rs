//! Who may say what came of a job: leases, heartbeats, rescue, cancel.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use queue_runtime::job::{
    Change, Claimed, DeadReason, JobEvent, JobResult, JobType, OutcomeKind, QueueName, Settled,
    Settlement, WorkerId,
};
use queue_runtime::seam::Seam;
use queue_runtime::store::{ClaimRequest, Suspects};
use queue_runtime::{Data, JobContext, JobId, JobState, Queue, Worker, job};
use queue_testkit::clock::TestSeam;
use tokio::sync::Notify;

use crate::world::{File, World, final_events};

#[job(timeout = "none", retries = 1, backoff = "fixed(1s)")]
async fn waits(started: Data<Notify>, go: Data<Semaphore>) {
    started.notify_one();
    go.0.acquire().await.expect("never closed").forget();
}

struct Semaphore(tokio::sync::Semaphore);

fn waiting(queue: &Queue) -> (queue_runtime::WorkerBuilder, Data<Notify>, Data<Semaphore>) {
    let started = Data::new(Notify::new());
    let go = Data::new(Semaphore(tokio::sync::Semaphore::new(0)));
    let worker = Worker::builder(queue)
        .job::<WaitsJob>()
        .shared(started.clone())
        .shared(go.clone());
    (worker, started, go)
}

/// Claims a job as another worker would, and leaves it at that.
async fn claim_as(queue: &Queue, name: &str, lease: Duration) -> Vec<Claimed> {
    let request = ClaimRequest {
        worker: WorkerId::new(name).expect("a name"),
        queues: vec![QueueName::default_queue()],
        job_types: vec![(JobType::new("waits").expect("a name"), 1)],
        limit: 1,
        lease,
        suspects: Suspects::NONE,
    };
    queue
        .store()
        .claim(&request)
        .await
        .expect("the store answers")
}

#[tokio::test]
async fn a_job_ten_leases_long_runs_once() {
    let world = World::new();
    let (worker, started, go) = waiting(&world.queue);
    let sent = waits::enqueue(&world.queue).await.expect("enqueued");
    let begun = Seam::elapsed(&world.seam);
    let long_enough = Duration::from_mins(10);

    let seam = world.seam.clone();
    let done = async || {
        if Seam::elapsed(&seam) - begun > long_enough && go.0.available_permits() == 0 {
            go.0.add_permits(1);
        }
        world.job(sent.id).await.state.is_final()
    };
    world.run_until(worker, done).await.expect("ends well");

    started.notified().await;
    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.crashes),
        (JobState::Done, 1, 0)
    );
}

#[tokio::test]
async fn the_job_of_a_dead_worker_is_run_again_by_another() {
    let mut world = World::new();
    let sent = waits::enqueue(&world.queue).await.expect("enqueued");
    let dead = claim_as(&world.queue, "dead@1", Duration::from_secs(60)).await;
    let (worker, _, go) = waiting(&world.queue);
    go.0.add_permits(1);

    world.run(worker, &[sent.id]).await;

    let job = world.job(sent.id).await;
    assert_eq!((job.state, job.attempts), (JobState::Done, 2));
    let attempts = world
        .queue
        .attempts(sent.id)
        .await
        .expect("the store answers");
    assert_eq!(attempts[0].outcome, Some(OutcomeKind::Lost));
    assert!(
        attempts[0]
            .error
            .as_deref()
            .expect("a reason")
            .contains("visibility timeout")
    );
    let rescued = world.events().into_iter().find_map(|event| match event {
        JobEvent::Rescued { token, worker, .. } => Some((token, worker.to_string())),
        _ => None,
    });
    assert_eq!(rescued, Some((dead[0].token, "dead@1".to_owned())));
}

#[tokio::test]
async fn a_late_worker_cannot_finish_a_job_that_another_one_holds() {
    let world = World::new();
    let sent = waits::enqueue(&world.queue).await.expect("enqueued");
    let late = claim_as(&world.queue, "late@1", Duration::from_secs(60))
        .await
        .remove(0);
    let (worker, _, go) = waiting(&world.queue);
    go.0.add_permits(1);
    world.run(worker, &[sent.id]).await;
    let before = world.job(sent.id).await;

    let settlement = Settlement {
        id: late.id,
        token: late.token,
        change: Change::DeadLetter {
            reason: DeadReason::Permanent,
        },
        outcome: OutcomeKind::Permanent,
        error: Some("too late".to_owned()),
        attempts: 1,
        crashes: 0,
        snoozes: 0,
        only_if_expired: false,
    };
    let answer = world
        .queue
        .store()
        .settle(&[settlement])
        .await
        .expect("the store answers");

    assert_eq!(answer, [Settled::Stale]);
    assert_eq!(world.job(sent.id).await, before);
}

#[tokio::test]
async fn a_job_that_keeps_killing_its_worker_becomes_a_dead_letter() {
    let world = World::new();
    let sent = waits::enqueue(&world.queue)
        .retries(9)
        .await
        .expect("enqueued");
    for crash in 1..=3 {
        let claimed = claim_as(&world.queue, "doomed@1", Duration::from_secs(1)).await;
        assert_eq!(claimed.len(), 1, "crash {crash}");
        world.seam.advance(Duration::from_secs(1));
        // A worker that serves another queue rescues all the same, and never runs the job.
        let idle = Worker::builder(&world.queue).job::<ElsewhereJob>();
        let rescued = async || world.job(sent.id).await.state != JobState::Processing;
        world.run_until(idle, rescued).await.expect("ends well");
        world.seam.advance(Duration::from_mins(5));
    }

    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.crashes),
        (JobState::DeadLetter, 3, 3)
    );
    assert_eq!(job.dead_reason, Some(DeadReason::Crashed));
}

#[job(queue = "elsewhere")]
async fn elsewhere() {}

#[tokio::test]
async fn a_cancel_stops_a_running_handler() {
    let world = World::new();
    let (worker, started, _go) = waiting(&world.queue);
    let sent = waits::enqueue(&world.queue).await.expect("enqueued");
    let asked = std::cell::Cell::new(false);

    let done = async || {
        let job = world.job(sent.id).await;
        if job.state == JobState::Processing && !asked.replace(true) {
            let state = world.queue.cancel(sent.id).await.expect("it runs");
            assert_eq!(state, JobState::Processing);
        }
        job.state.is_final()
    };
    world.run_until(worker, done).await.expect("ends well");

    started.notified().await;
    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.last_outcome),
        (JobState::Cancelled, Some(OutcomeKind::Cancelled))
    );
}

#[job(retries = 3, backoff = "fixed(1s)")]
async fn fails_when_told(go: Data<Semaphore>) -> Result<(), std::io::Error> {
    go.0.acquire().await.expect("never closed").forget();
    Err(std::io::Error::other("no luck"))
}

#[tokio::test]
async fn a_retry_that_a_cancel_overruled_is_told_as_cancelled() {
    let mut world = World::new();
    let sent = fails_when_told::enqueue(&world.queue)
        .await
        .expect("enqueued");
    let go = Data::new(Semaphore(tokio::sync::Semaphore::new(0)));
    let worker = Worker::builder(&world.queue)
        .job::<FailsWhenToldJob>()
        .shared(go.clone());

    let done = async || {
        let job = world.job(sent.id).await;
        if job.state == JobState::Processing && job.cancel_requested_at.is_none() {
            world.queue.cancel(sent.id).await.expect("it runs");
            go.0.add_permits(1);
        }
        job.state.is_final()
    };
    world.run_until(worker, done).await.expect("ends well");

    let told = world.events().into_iter().find_map(|event| match event {
        JobEvent::Settled { result, state, .. } => Some((result, state)),
        _ => None,
    });
    assert_eq!(told, Some((JobResult::Cancelled, JobState::Cancelled)));
}

#[tokio::test]
async fn a_cancel_stops_a_waiting_job_at_once() {
    let world = World::new();
    let sent = waits::enqueue(&world.queue).await.expect("enqueued");
    assert_eq!(
        world.queue.cancel(sent.id).await.expect("it waits"),
        JobState::Cancelled
    );
    let again = world.queue.cancel(sent.id).await.expect_err("it is final");
    assert!(
        again.to_string().contains("already final (cancelled)"),
        "{again}"
    );
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_stops_the_handler_and_says_nothing() {
    let mut world = World::new();
    let (worker, started, _go) = waiting(&world.queue);
    let sent = waits::enqueue(&world.queue)
        .retries(9)
        .await
        .expect("enqueued");
    let stolen = std::cell::Cell::new(None);

    // Somebody else gets the job, as happens when this worker was frozen for longer than a lease.
    let done = async || {
        let job = world.job(sent.id).await;
        if stolen.get().is_none() && job.state == JobState::Processing {
            let token = job.lock_token.expect("it is claimed");
            let settlement = Settlement {
                id: job.id,
                token,
                change: Change::Queued {
                    delay: Duration::from_hours(90),
                },
                outcome: OutcomeKind::Lost,
                error: None,
                attempts: 1,
                crashes: 1,
                snoozes: 0,
                only_if_expired: false,
            };
            world
                .queue
                .store()
                .settle(&[settlement])
                .await
                .expect("the store answers");
            stolen.set(Some(token));
        }
        world.faults.calls(queue_testkit::Verb::Extend) > 0 && stolen.get().is_some()
    };
    world.run_until(worker, done).await.expect("ends well");

    started.notified().await;
    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts),
        (JobState::Queued, 1),
        "nothing was said about it"
    );
    let lost = JobEvent::LeaseLost {
        id: sent.id,
        token: stolen.get().expect("it was stolen"),
    };
    assert!(world.events().contains(&lost));
}

#[job(timeout = "none", retries = 9)]
async fn may_kill(kills: bool, seam: Data<TestSeam>, crash: Data<Notify>) {
    match kills {
        true => crash.notify_one(),
        false => seam.sleep(Duration::from_secs(10)).await,
    }
    if kills {
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn a_job_that_kills_its_worker_does_not_take_innocent_jobs_into_the_grave() {
    let world = World::new();
    let mut innocent = Vec::new();
    for n in 0..20 {
        let sent = may_kill::enqueue(&world.queue, n == 10)
            .await
            .expect("enqueued");
        innocent.extend((n != 10).then_some(sent.id));
    }

    // Each life of the worker ends when the job strikes, or well.
    for life in 1.. {
        assert!(life < 10, "it never ends");
        let crash = Data::new(Notify::new());
        let worker = Worker::builder(&world.queue)
            .job::<MayKillJob>()
            .shared(Data::new(world.seam.clone()))
            .shared(crash.clone());
        let all_final = async || {
            world
                .queue
                .counts()
                .await
                .is_ok_and(|c| c.queued + c.processing == 0)
        };
        tokio::select! {
            ended = world.run_until(worker, all_final) => {
                ended.expect("ends well");
                break;
            }
            // Dropping a worker is like killing it.
            () = crash.notified() => world.seam.advance(Duration::from_secs(60)),
        }
    }

    let counts = world.queue.counts().await.expect("the store answers");
    assert_eq!((counts.dead_letter, counts.done), (1, 19));
    for id in innocent {
        assert_eq!(world.job(id).await.state, JobState::Done);
    }
}

#[job(timeout = "none")]
async fn blocks(
    ctx: JobContext,
    running: Data<std::sync::mpsc::SyncSender<JobId>>,
    go: Data<Gate>,
) {
    running.send(ctx.job_id()).expect("the test listens");
    // No await in between: the runtime's only thread is blocked.
    go.0.lock()
        .expect("one at a time")
        .recv()
        .expect("the test says go");
}

struct Gate(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

#[test]
fn a_handler_that_blocks_every_thread_keeps_its_lease() {
    let file = File::new();
    let (running, is_running) = std::sync::mpsc::sync_channel(1);
    let (say_go, go) = std::sync::mpsc::sync_channel(1);
    let (tell, is_told) = std::sync::mpsc::sync_channel(9);
    let url = file.url();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    let worker = std::thread::spawn(move || {
        runtime().expect("a runtime").block_on(async {
            let queue = Queue::open(&url).await.expect("the file opens");
            blocks::enqueue(&queue).await.expect("enqueued");
            let done = final_events(&queue, 1);
            let mut events = queue.events();
            // On a thread of its own, since this one will be blocked.
            std::thread::spawn(move || {
                while let Ok(event) = events.blocking_recv() {
                    if let JobEvent::Blocked { running, .. } = event {
                        tell.send(running).expect("the test listens");
                    }
                }
            });
            let lease = Duration::from_secs(2);
            Worker::builder(&queue)
                .job::<BlocksJob>()
                .lease(lease)
                .heartbeat(lease / 10)
                .data(running)
                .data(Gate(std::sync::Mutex::new(go)))
                .run_until(done)
                .await
                .expect("ends well");
        });
    });
    let id = is_running.recv().expect("the handler runs");

    // Seen from outside: the lease is renewed again and again while the thread is blocked.
    runtime().expect("a runtime").block_on(async {
        let queue = file.open().await;
        let mut ends = std::collections::BTreeSet::new();
        while ends.len() < 5 {
            let job = queue
                .job(id)
                .await
                .expect("the store answers")
                .expect("it exists");
            assert_eq!((job.state, job.attempts), (JobState::Processing, 1));
            ends.extend(job.locked_until);
        }
        let told = is_told.recv().expect("the blocking handler is told of");
        assert_eq!(told, [id]);
        say_go.send(()).expect("the handler waits");
        tokio::task::spawn_blocking(|| worker.join().expect("the worker ends well"))
            .await
            .expect("joined");
        let job = queue
            .job(id)
            .await
            .expect("the store answers")
            .expect("it exists");
        assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    });
}

#[job(timeout = "20ms", retries = 1, backoff = "fixed(1ms)")]
async fn blocks_too_long(tries: Data<AtomicU32>) {
    let begun = std::time::Instant::now();
    if tries.fetch_add(1, Ordering::Relaxed) < 9 {
        // Blocks its thread, by the clock, for longer than its limit and one lease.
        while begun.elapsed() < Duration::from_millis(900) {
            std::hint::spin_loop();
        }
        tokio::task::yield_now().await;
        std::future::pending::<()>().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_beyond_its_limit_uses_its_attempts() {
    let queue = Queue::in_memory();
    let sent = blocks_too_long::enqueue(&queue).await.expect("enqueued");
    let lease = Duration::from_millis(300);
    let worker = Worker::builder(&queue)
        .job::<BlocksTooLongJob>()
        .data(AtomicU32::new(0))
        .lease(lease)
        .heartbeat(lease / 6);
    worker.run_until_empty().await.expect("ends well");

    let job = queue
        .job(sent.id)
        .await
        .expect("it answers")
        .expect("it exists");
    assert_eq!(
        (job.state, job.attempts),
        (JobState::DeadLetter, 2),
        "{:?}",
        job.last_error
    );
}
