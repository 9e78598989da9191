//! Jobs that a worker leaves running when it is gone, and who takes them over.

use std::time::Duration;

use queue_runtime::job::{
    Change, DeadReason, JobEvent, NewJob, Outcome, OutcomeKind, Settled, Settlement,
};
use queue_runtime::rules::transition::{RetryPolicy, Standing, settle};
use queue_runtime::store::Inserted;
use queue_runtime::{JobState, Worker, job};
use queue_testkit::conformance::jobs::{LEASE, done, keep, rerun, rescue};

use crate::child::{Child, IsUnderWayJob, is_under_way, worker};
use crate::world::{Subject, World, claim_as, finals, job};

on! { memory:
    real { o_022_a_rescue_by_a_worker_that_does_not_know_the_job_does_not_discard_it }
    by_hand {
        o_023_a_head_that_dies_on_its_last_attempt_does_not_block_the_next_of_its_key
        o_042_a_late_worker_does_not_free_a_key_a_second_time
    }
}

on! { sqlite:
    real {
        o_018_a_process_of_the_same_name_does_not_keep_the_jobs_of_a_killed_one
        o_022_a_rescue_by_a_worker_that_does_not_know_the_job_does_not_discard_it
    }
    by_hand {
        o_023_a_head_that_dies_on_its_last_attempt_does_not_block_the_next_of_its_key
        o_042_a_late_worker_does_not_free_a_key_a_second_time
    }
}

on! { postgres:
    real {
        o_018_a_process_of_the_same_name_does_not_keep_the_jobs_of_a_killed_one
        o_022_a_rescue_by_a_worker_that_does_not_know_the_job_does_not_discard_it
    }
    by_hand {
        o_023_a_head_that_dies_on_its_last_attempt_does_not_block_the_next_of_its_key
        o_042_a_late_worker_does_not_free_a_key_a_second_time
    }
}

/// The same host and the same name, at once after the kill.
async fn o_018_a_process_of_the_same_name_does_not_keep_the_jobs_of_a_killed_one(world: &World) {
    let queue = world.open().await;
    let sent = is_under_way::enqueue(&queue, 7).await.expect("enqueued");
    let mut child = Child::start("holds", world);
    child.says("running").await;
    child.kill().await;
    let held = job(&queue, sent.id).await;
    let (killed, ends) = (
        held.locked_by.expect("held"),
        held.locked_until.expect("held"),
    );

    let next = worker(&queue)
        .job::<IsUnderWayJob>()
        .build()
        .expect("it fits");
    let name = |id: &str| id.split('@').next().expect("a name").to_owned();
    assert_eq!(name(next.id().as_str()), name(killed.as_str()));
    assert_ne!(*next.id(), killed);
    next.run_until(finals(&[&queue], 1))
        .await
        .expect("ends well");

    let ended = job(&queue, sent.id).await;
    assert_eq!((ended.state, ended.attempts), (JobState::Done, 2));
    let attempts = queue.attempts(sent.id).await.expect("it answers");
    assert_eq!(attempts[0].outcome, Some(OutcomeKind::Lost));
    // Not before its lease has ended, and not for ever after it.
    let taken = attempts[0].finished_at.expect("it was taken over");
    assert!(taken >= ends && taken.since(ends) < Duration::from_secs(30));
}

#[job]
async fn is_of_fleet_a() {}

#[job]
async fn is_of_fleet_b(n: u64) {
    assert_eq!(n, 42);
}

async fn o_022_a_rescue_by_a_worker_that_does_not_know_the_job_does_not_discard_it(world: &World) {
    let queue = world.open().await;
    let sent = is_of_fleet_b::enqueue(&queue, 42).await.expect("enqueued");
    let lease = Duration::from_millis(200);
    let lost = claim_as(&queue, "fleet-b@1", "is_of_fleet_b", lease).await;
    assert_eq!(lost.len(), 1);
    let held = job(&queue, sent.id).await;

    let mut events = queue.events();
    let rescued =
        async move { while !matches!(events.recv().await, Ok(JobEvent::Rescued { .. })) {} };
    let fleet_a = worker(&queue).job::<IsOfFleetAJob>();
    fleet_a.run_until(rescued).await.expect("ends well");

    let waits = job(&queue, sent.id).await;
    let standing = (waits.state, waits.attempts, waits.crashes);
    assert_eq!(standing, (JobState::Queued, 1, 1));
    assert_eq!(waits.payload, held.payload);
    assert_eq!(
        (waits.max_attempts, waits.deadline),
        (held.max_attempts, held.deadline)
    );
    let fleet_b = Worker::builder(&queue).job::<IsOfFleetBJob>();
    fleet_b
        .run_until(finals(&[&queue], 1))
        .await
        .expect("ends well");
    let ended = job(&queue, sent.id).await;
    assert_eq!((ended.state, ended.attempts), (JobState::Done, 2));
}

async fn o_023_a_head_that_dies_on_its_last_attempt_does_not_block_the_next_of_its_key(
    s: &Subject,
) {
    let head = NewJob {
        dedupe: rerun("k"),
        max_attempts: 1,
        ..s.job()
    };
    let run = s.running(&head).await;
    let next = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.add(&next).await;
    assert_eq!(s.claim_all().await, [], "it waits behind the head");
    s.advance(LEASE);

    let policy = RetryPolicy::default();
    let crash = settle(&Standing::from(&run), &Outcome::Lost, &policy, s.now(), 0);
    let reason = DeadReason::AttemptsExhausted;
    assert_eq!(crash.change, Change::DeadLetter { reason });
    s.apply(crash).await;

    let taken = s.take().await;
    assert_eq!(taken.id, next.id);
    s.apply(done(&taken)).await;
    assert_eq!(s.record(head.id).await.state, JobState::DeadLetter);
}

/// The late worker speaks once while the second run holds the key, and once while a third does.
async fn o_042_a_late_worker_does_not_free_a_key_a_second_time(s: &Subject) {
    let keyed = || NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    let late = s.running(&keyed()).await;
    s.advance(LEASE);
    s.apply(rescue(&late)).await;
    let second = s.take().await;
    says_nothing_new(s, &done(&late), &keyed()).await;

    s.apply(done(&second)).await;
    let third = s.running(&keyed()).await;
    says_nothing_new(s, &done(&late), &keyed()).await;
    says_nothing_new(s, &done(&second), &keyed()).await;
    assert_eq!(s.claim_all().await, []);

    s.apply(done(&third)).await;
    let counts = s.store().counts().await.expect("it answers");
    assert_eq!((counts.done, counts.total()), (2, 2));
}

/// A settlement is refused, and the key is held as before.
async fn says_nothing_new(s: &Subject, late: &Settlement, newcomer: &NewJob) {
    let answer = s.settle(std::slice::from_ref(late)).await;
    assert_eq!(answer, [Settled::Stale]);
    let answer = s.offer(newcomer).await;
    let is_held = matches!(
        answer,
        Inserted::Duplicate {
            state: JobState::Processing,
            ..
        }
    );
    assert!(is_held, "{answer:?}");
}
