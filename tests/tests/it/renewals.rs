//! The renewals of a lease: while its attempt runs, through a store that fails, and not after.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use queue_runtime::job::OutcomeKind;
use queue_runtime::seam::Seam;
use queue_runtime::{Data, JobState, Worker, WorkerBuilder, job};
use queue_testkit::Verb;
use tokio::sync::Notify;

use crate::logs::Log;
use crate::world::World;

#[job(timeout = "none", retries = 1)]
async fn long_one(go: Data<Notify>, dropped: Data<AtomicBool>) {
    let _told = Told(dropped);
    go.notified().await;
}

/// Notes that a handler's future was dropped or ended.
struct Told(Data<AtomicBool>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[job]
async fn short_one() {}

fn worker(world: &World) -> (WorkerBuilder, Data<Notify>, Data<AtomicBool>) {
    let (go, ended) = (Data::new(Notify::new()), Data::new(AtomicBool::new(false)));
    let worker = Worker::builder(&world.queue)
        .job::<LongOneJob>()
        .job::<ShortOneJob>()
        .shared(go.clone())
        .shared(ended.clone());
    (worker, go, ended)
}

#[tokio::test]
async fn a_lease_is_not_renewed_after_its_attempt_has_ended() {
    let world = World::new();
    let (worker, go, _) = worker(&world);
    let sent = long_one::enqueue(&world.queue).await.expect("enqueued");
    let renewals = || world.faults.calls(Verb::Extend);
    let at_end = Cell::new(None);

    let long_after = async || {
        if renewals() == 3 {
            go.notify_one();
        }
        if at_end.get().is_none() && world.job(sent.id).await.state.is_final() {
            at_end.set(Some((renewals(), world.seam.elapsed())));
        }
        at_end
            .get()
            .is_some_and(|(_, ended)| world.seam.elapsed() - ended > Duration::from_mins(3))
    };
    world
        .run_until(worker, long_after)
        .await
        .expect("ends well");

    assert_eq!(at_end.get().map(|(renewals, _)| renewals), Some(3));
    assert_eq!(renewals(), 3, "three minutes are twelve heartbeats");
}

#[tokio::test]
async fn a_renewal_that_fails_is_told_and_tried_again_while_the_job_runs_on() {
    let world = World::new();
    let (log, _guard) = Log::start();
    let (worker, go, _) = worker(&world);
    let sent = long_one::enqueue(&world.queue).await.expect("enqueued");
    world.faults.fail_next(Verb::Extend, 3);
    let begun = world.seam.elapsed();

    let done = async || {
        if world.seam.elapsed() - begun > Duration::from_mins(3) {
            go.notify_one();
        }
        world.job(sent.id).await.state.is_final()
    };
    world.run_until(worker, done).await.expect("ends well");

    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.crashes),
        (JobState::Done, 1, 0)
    );
    let told = log.lines().into_iter().filter(|line| {
        line.message() == "leases could not be renewed; trying again"
            && line.level == tracing::Level::WARN
            && line.fields["error"] == "extend: failed on demand"
    });
    assert_eq!(told.count(), 3);
}

#[tokio::test]
async fn renewals_that_fail_for_ever_cost_no_attempt_its_lease_before_the_end_nor_the_worker() {
    let world = World::new();
    let (worker, _go, ended) = worker(&world);
    let sent = long_one::enqueue(&world.queue).await.expect("enqueued");
    world.faults.fail_next(Verb::Extend, usize::MAX);
    let (begun, stopped_at) = (world.seam.elapsed(), Cell::new(None));
    let after = Cell::new(None);

    // Once the attempt is stopped, another job shows that the worker lives.
    let done = async || {
        if ended.load(Ordering::Relaxed) && stopped_at.get().is_none() {
            stopped_at.set(Some(world.seam.elapsed() - begun));
            let sent = short_one::enqueue(&world.queue).await.expect("enqueued");
            after.set(Some(sent.id));
        }
        match after.get() {
            Some(id) => world.job(id).await.state == JobState::Done,
            None => false,
        }
    };
    world.run_until(worker, done).await.expect("ends well");

    // A lease of 60 s is given up a tenth before its end, and looked at once a heartbeat.
    let stopped_at = stopped_at.get().expect("it was stopped");
    assert!(
        (Duration::from_secs(54)..Duration::from_secs(60)).contains(&stopped_at),
        "{stopped_at:?}"
    );
    let attempts = world.queue.attempts(sent.id).await;
    let first = attempts.expect("the store answers").remove(0);
    assert_eq!(first.outcome, Some(OutcomeKind::HandedBack));
}

#[tokio::test]
async fn a_slow_answer_to_a_frequent_heartbeat_is_not_taken_for_a_dead_server() {
    let world = World::new();
    let (log, _guard) = Log::start();
    let (worker, go, _) = worker(&world);
    let worker = worker
        .lease(Duration::from_secs(12))
        .heartbeat(Duration::from_millis(500));
    let sent = long_one::enqueue(&world.queue).await.expect("enqueued");
    world.faults.hold(Verb::Extend);
    let asked_at = Cell::new(None);

    // A third of a lease is four seconds, eight heartbeats.
    let done = async || {
        if world.faults.calls(Verb::Extend) == 1 {
            let now = world.seam.elapsed();
            let asked = asked_at.get().unwrap_or(now);
            asked_at.set(Some(asked));
            if now - asked >= Duration::from_millis(3_500) {
                world.faults.release(Verb::Extend);
            }
        }
        if world.faults.calls(Verb::Extend) == 2 {
            go.notify_one();
        }
        world.job(sent.id).await.state.is_final()
    };
    world.run_until(worker, done).await.expect("ends well");

    assert_eq!(world.job(sent.id).await.state, JobState::Done);
    assert_eq!(world.faults.calls(Verb::Heartbeat), 1, "one connection");
    let told = log
        .lines()
        .into_iter()
        .map(|line| line.message().to_owned());
    let failed = told.filter(|told| told.contains("could not be renewed"));
    assert_eq!(failed.count(), 0);
}
