//! A store that fails: what is waited for, what is kept, and what ends the worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use queue_runtime::error::StoreErrorKind;
use queue_runtime::job::JobEvent;
use queue_runtime::seam::Seam;
use queue_runtime::store::Retention;
use queue_runtime::{Data, JobState, Queue, Worker, WorkerError, job};
use queue_testkit::Verb;
use queue_testkit::faulty::Faulty;

use crate::world::World;

#[job(retries = 3)]
async fn counts_runs(runs: Data<AtomicU32>) {
    runs.fetch_add(1, Ordering::Relaxed);
}

#[tokio::test]
async fn a_store_that_fails_while_a_result_is_recorded_costs_no_second_run() {
    let world = World::new();
    let runs = Data::new(AtomicU32::new(0));
    let sent = counts_runs::enqueue(&world.queue).await.expect("enqueued");
    world.faults.fail_next(Verb::Settle, 5);

    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .shared(runs.clone());
    world.run(worker, &[sent.id]).await;

    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.last_error),
        (JobState::Done, 1, None)
    );
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_result_whose_reply_was_lost_is_applied_once_and_told_once() {
    let mut world = World::new();
    let runs = Data::new(AtomicU32::new(0));
    let sent = counts_runs::enqueue(&world.queue).await.expect("enqueued");
    world.faults.lose_reply_next(Verb::Settle);

    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .shared(runs.clone());
    let told = std::cell::Cell::new(false);
    let mut events = world.queue.events();
    let events = std::cell::RefCell::new(&mut events);
    let settled = async || {
        while let Ok(event) = events.borrow_mut().try_recv() {
            told.set(
                told.get()
                    || matches!(
                        event,
                        JobEvent::Settled { .. } | JobEvent::SettledStale { .. }
                    ),
            );
        }
        told.get()
    };
    world.run_until(worker, settled).await.expect("ends well");

    let attempts = world
        .queue
        .attempts(sent.id)
        .await
        .expect("the store answers");
    assert_eq!((attempts.len(), runs.load(Ordering::Relaxed)), (1, 1));
    let ends: Vec<_> = world
        .events()
        .into_iter()
        .filter_map(|event| match event {
            JobEvent::Settled { state, .. } => Some(Some(state)),
            JobEvent::SettledStale { .. } => Some(None),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [Some(JobState::Done)]);
}

#[tokio::test]
async fn a_look_ahead_that_fails_loses_no_claimed_job() {
    let world = World::new();
    let runs = Data::new(AtomicU32::new(0));
    let sent = counts_runs::enqueue(&world.queue).await.expect("enqueued");
    world.faults.fail_next(Verb::NextDue, 3);

    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .shared(runs.clone());
    world.run(worker, &[sent.id]).await;

    assert_eq!(
        world.job(sent.id).await.attempts,
        1,
        "it did not have to be rescued"
    );
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_comes_back_when_its_lease_has_run_out() {
    let world = World::new();
    let runs = Data::new(AtomicU32::new(0));
    let sent = counts_runs::enqueue(&world.queue).await.expect("enqueued");
    world.faults.lose_reply_next(Verb::Claim);

    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .shared(runs.clone());
    world.run(worker, &[sent.id]).await;

    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts),
        (JobState::Done, 2),
        "the lost claim has used one"
    );
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_store_that_is_down_at_the_start_is_waited_for() {
    let world = World::new();
    let sent = counts_runs::enqueue(&world.queue).await.expect("enqueued");
    for verb in [Verb::Claim, Verb::Expired, Verb::Prune, Verb::Heartbeat] {
        world.faults.fail_next(verb, 4);
    }
    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .data(AtomicU32::new(0))
        .build()
        .expect("it fits");
    let ready = worker.ready();
    assert!(!*ready.borrow());

    let mut was_ready_too_soon = false;
    let stop = tokio::sync::Notify::new();
    let run = worker.run_until(stop.notified());
    tokio::pin!(run);
    loop {
        let quiet = async {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            ended = &mut run => {
                ended.expect("ends well");
                break;
            }
            () = quiet => {}
        }
        was_ready_too_soon |= *ready.borrow() && world.faults.calls(Verb::Claim) <= 4;
        match world.job(sent.id).await.state.is_final() {
            true => stop.notify_one(),
            false => drop(world.seam.advance_to_next_sleeper()),
        }
    }
    assert!(!was_ready_too_soon);
    assert_eq!(world.job(sent.id).await.state, JobState::Done);
}

#[tokio::test]
async fn a_fault_that_waiting_cannot_cure_ends_the_worker() {
    for verb in [Verb::Claim, Verb::Expired, Verb::Prune] {
        let world = World::new();
        world.faults.fail_next_as(verb, 1, StoreErrorKind::Corrupt);
        let worker = Worker::builder(&world.queue)
            .job::<CountsRunsJob>()
            .data(AtomicU32::new(0));

        let ended = world.run_until(worker, async || false).await;

        let error = ended.expect_err("it cannot go on");
        assert!(matches!(error, WorkerError::Store { .. }), "{error:?}");
    }
}

#[job(timeout = "none")]
async fn never_ends(dropped: Data<Dropped>) {
    let _told = Told(dropped);
    std::future::pending::<()>().await;
}

struct Dropped(AtomicU32);

/// Counts that a handler's future was dropped.
struct Told(Data<Dropped>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_worker_that_is_cut_from_its_store_stops_its_handlers_before_others_take_over() {
    for verb in [Verb::Extend, Verb::Heartbeat] {
        let world = World::new();
        never_ends::enqueue(&world.queue).await.expect("enqueued");
        let dropped = Data::new(Dropped(0.into()));
        let worker = Worker::builder(&world.queue)
            .job::<NeverEndsJob>()
            .shared(dropped.clone());
        world.faults.fail_next(Verb::Extend, 1);
        world.faults.fail_next(verb, usize::MAX);
        let begun = world.seam.elapsed();

        let stopped_at = std::cell::Cell::new(None);
        let stopped = async || {
            if dropped.0.load(Ordering::Relaxed) > 0 && stopped_at.get().is_none() {
                stopped_at.set(Some(world.seam.elapsed()));
            }
            stopped_at.get().is_some()
        };
        world.run_until(worker, stopped).await.expect("ends well");

        let took = stopped_at.get().expect("it was stopped") - begun;
        assert!(
            took <= std::time::Duration::from_secs(60),
            "{verb}: after {took:?}"
        );
    }
}

#[tokio::test]
async fn a_worker_is_not_ready_any_more_once_it_has_ended() {
    let world = World::new();
    world
        .faults
        .fail_next_as(Verb::Expired, 1, StoreErrorKind::Corrupt);
    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .data(AtomicU32::new(0));
    let worker = worker.build().expect("it fits");
    let ready = worker.ready();

    worker
        .run_until(std::future::pending())
        .await
        .expect_err("it cannot go on");

    assert!(!*ready.borrow());
}

#[tokio::test]
async fn results_that_wait_to_be_recorded_hold_back_new_claims() {
    let world = World::new();
    let jobs = (0..3_000).map(|_| CountsRunsJob {});
    world.queue.enqueue_all(jobs).await.expect("enqueued");
    let most = std::cell::Cell::new(0);
    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .data(AtomicU32::new(0))
        .concurrency(2_000);

    let done = async || {
        let counts = world.queue.counts().await.expect("the store answers");
        most.set(most.get().max(counts.processing));
        counts.queued + counts.processing == 0
    };
    world.run_until(worker, done).await.expect("ends well");

    // Slots, a stock, and one batch on its way.
    assert!(most.get() <= 2_000 + 500 + 500, "{} at once", most.get());
}

#[tokio::test]
async fn a_store_that_hangs_while_a_lease_is_renewed_does_not_keep_the_handler_running() {
    let world = World::new();
    never_ends::enqueue(&world.queue).await.expect("enqueued");
    let dropped = Data::new(Dropped(0.into()));
    let worker = Worker::builder(&world.queue)
        .job::<NeverEndsJob>()
        .shared(dropped.clone());
    world.faults.hold(Verb::Extend);
    let begun = world.seam.elapsed();

    let stopped_at = std::cell::Cell::new(None);
    let stopped = async || {
        if dropped.0.load(Ordering::Relaxed) > 0 && stopped_at.get().is_none() {
            stopped_at.set(Some(world.seam.elapsed()));
            world.faults.release(Verb::Extend);
        }
        stopped_at.get().is_some()
    };
    world.run_until(worker, stopped).await.expect("ends well");

    let took = stopped_at.get().expect("it was stopped") - begun;
    assert!(took <= std::time::Duration::from_secs(60), "after {took:?}");
}

#[tokio::test]
async fn an_outage_longer_than_a_lease_costs_a_healthy_job_nothing() {
    let world = World::new();
    let sent = never_ends::enqueue(&world.queue)
        .retries(9)
        .await
        .expect("enqueued");
    let dropped = Data::new(Dropped(0.into()));
    let worker = Worker::builder(&world.queue)
        .job::<NeverEndsJob>()
        .shared(dropped.clone());
    for outage in 1..=4 {
        world.faults.fail_next(Verb::Extend, outage * 20);
    }

    let cut_four_times = async || dropped.0.load(Ordering::Relaxed) >= 4;
    world
        .run_until(worker, cut_four_times)
        .await
        .expect("ends well");

    let job = world.job(sent.id).await;
    assert_eq!((job.attempts, job.crashes), (0, 0));
}

#[tokio::test]
async fn retention_keeps_up_with_more_than_one_batch() {
    let world = World::new();
    let begun = world.seam.elapsed();
    let jobs = (0..1_700).map(|_| CountsRunsJob {});
    world.queue.enqueue_all(jobs).await.expect("enqueued");
    let now = std::time::Duration::ZERO;
    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .data(AtomicU32::new(0))
        .retention(Retention {
            done: now,
            cancelled: now,
            dead_letter: now,
        });

    let empty = async || world.queue.counts().await.expect("it answers").total() == 0;
    world.run_until(worker, empty).await.expect("ends well");

    // Everything went with the first round after the jobs had ended: the next is ten minutes later.
    let took = world.seam.elapsed() - begun;
    assert!(took < std::time::Duration::from_mins(15), "after {took:?}");
}

#[tokio::test]
async fn a_worker_on_a_closed_queue_ends() {
    let world = World::new();
    world.queue.close().await;
    let worker = Worker::builder(&world.queue)
        .job::<CountsRunsJob>()
        .data(AtomicU32::new(0));
    let ended = worker.run_until(std::future::pending()).await;
    assert!(matches!(ended, Err(WorkerError::Store { .. })), "{ended:?}");
}

#[job(timeout = "none", retries = 9)]
async fn ends_when_told(go: Data<Go>) {
    go.0.notified().await;
}

struct Go(tokio::sync::Notify);

/// How far an outage is.
#[derive(Clone, Copy)]
enum Stage {
    Well,
    Out { since: std::time::Duration },
    OtherIsBack { since: std::time::Duration },
}

/// The store can be read and not written for a while, as while another program holds its lock;
/// and the worker that holds the job notices the end of that a little later than the other one.
#[tokio::test]
async fn outages_longer_than_a_lease_kill_no_healthy_job_whoever_looks_first_afterwards() {
    const WRITES: [Verb; 5] = [
        Verb::Extend,
        Verb::Settle,
        Verb::Exchange,
        Verb::Claim,
        Verb::Prune,
    ];
    let world = World::new();
    let sent = ends_when_told::enqueue(&world.queue)
        .await
        .expect("enqueued");
    let go = Data::new(Go(tokio::sync::Notify::new()));
    let holder = Worker::builder(&world.queue)
        .job::<EndsWhenToldJob>()
        .shared(go.clone());
    let others_faults = Faulty::new(Arc::clone(world.faults.inner()));
    let others_queue = Queue::on_store(Arc::new(others_faults.clone()), world.seam.shared());
    // It runs other jobs, and rescues everybody's.
    let other = Worker::builder(&others_queue)
        .job::<CountsRunsJob>()
        .data(AtomicU32::new(0));
    let (outages, stage) = (std::cell::Cell::new(0), std::cell::Cell::new(Stage::Well));

    let done = async || {
        let (job, now) = (world.job(sent.id).await, world.seam.elapsed());
        match stage.get() {
            Stage::Well if job.state == JobState::Processing && outages.get() < 4 => {
                for verb in WRITES {
                    world.faults.hold(verb);
                    others_faults.hold(verb);
                }
                outages.set(outages.get() + 1);
                stage.set(Stage::Out { since: now });
            }
            Stage::Well if outages.get() == 4 => go.0.notify_waiters(),
            Stage::Out { since } if now - since > std::time::Duration::from_secs(65) => {
                WRITES
                    .into_iter()
                    .for_each(|verb| others_faults.release(verb));
                // The clock stops there on its way.
                let later = std::time::Duration::from_secs(3);
                drop(tokio::spawn(world.seam.sleep(later)));
                stage.set(Stage::OtherIsBack { since: now });
            }
            Stage::OtherIsBack { since } if now > since => {
                WRITES
                    .into_iter()
                    .for_each(|verb| world.faults.release(verb));
                stage.set(Stage::Well);
            }
            _ => {}
        }
        job.state.is_final()
    };
    let other = other
        .build()
        .expect("it fits")
        .run_until(std::future::pending());
    tokio::select! {
        ended = world.run_until(holder, done) => ended.expect("ends well"),
        ended = other => panic!("the other worker ended: {ended:?}"),
    }

    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.crashes),
        (JobState::Done, 1, 0)
    );
}
