//! Jobs that get lost: between being taken and being run, and beside a clean-up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use queue_runtime::job::OutcomeKind;
use queue_runtime::{Data, JobState, Queue, Retention, Worker, job};
use queue_testkit::Verb;
use tokio::sync::{Notify, Semaphore};

use crate::child::{Child, SurvivesJob, takes_its_process_down, worker};
use crate::world::{World, beside, eventually, finals, job, together};

on! { memory:
    real {
        o_014_jobs_that_arrive_beside_a_clean_up_all_run
        o_017_a_job_that_was_taken_and_not_started_is_left_alone_until_its_lease_ends
    }
}

on! { sqlite:
    real {
        o_012_jobs_of_a_worker_killed_between_claim_and_handler_all_run
        o_014_jobs_that_arrive_beside_a_clean_up_all_run
        o_016_a_job_that_takes_its_process_down_is_not_taken_for_done
        o_017_a_job_that_was_taken_and_not_started_is_left_alone_until_its_lease_ends
    }
}

on! { postgres:
    real {
        o_012_jobs_of_a_worker_killed_between_claim_and_handler_all_run
        o_014_jobs_that_arrive_beside_a_clean_up_all_run
        o_016_a_job_that_takes_its_process_down_is_not_taken_for_done
        o_017_a_job_that_was_taken_and_not_started_is_left_alone_until_its_lease_ends
    }
}

async fn o_012_jobs_of_a_worker_killed_between_claim_and_handler_all_run(world: &World) {
    let queue = world.open().await;
    let sent = queue.enqueue_all((0..20).map(|_| SurvivesJob {})).await;
    let sent: Vec<_> = sent.expect("enqueued").into_iter().flatten().collect();

    let mut child = Child::start("takes", world);
    child.says("taken").await;
    child.kill().await;

    let counts = queue.counts().await.expect("it answers");
    assert_eq!((counts.processing, counts.queued), (20, 0));
    let next = worker(&queue).job::<SurvivesJob>();
    next.run_until(finals(&[&queue], 20))
        .await
        .expect("ends well");
    for sent in sent {
        let job = job(&queue, sent.id).await;
        assert_eq!((job.state, job.attempts), (JobState::Done, 2));
        let attempts = queue.attempts(sent.id).await.expect("it answers");
        let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome).collect();
        assert_eq!(
            outcomes,
            [OutcomeKind::Lost, OutcomeKind::Success].map(Some)
        );
    }
}

#[job]
async fn arrives(n: u64, seen: Data<Mutex<Vec<u64>>>) {
    seen.lock().expect("no panic while noting").push(n);
}

/// Two hundred jobs of four producers, each due at once, so that the queue is empty most of the
/// time; what is done is removed at once.
async fn o_014_jobs_that_arrive_beside_a_clean_up_all_run(world: &World) {
    const EACH: u64 = 50;
    let queues = [world.open().await, world.open().await, world.open().await];
    let seen = Data::new(Mutex::new(Vec::<u64>::new()));
    let stop = Semaphore::new(0);
    let workers = try_join_all([0, 1].map(|n| {
        let worker = Worker::builder(&queues[n]).job::<ArrivesJob>();
        let worker = worker.shared(seen.clone()).poll(Duration::from_millis(50));
        worker.run_until(async { stop.acquire().await.expect("never closed").forget() })
    }));
    let cleaner = tokio::spawn(cleans_for_ever(queues[2].clone()));

    let produce = async {
        together(4, |producer| {
            let queue = queues[producer % 3].clone();
            async move {
                for n in 0..EACH {
                    let sent = arrives::enqueue(&queue, producer as u64 * EACH + n).await;
                    assert!(!sent.expect("enqueued").duplicate);
                }
            }
        })
        .await;
        eventually(async || {
            let counts = queues[2].counts().await.expect("it answers");
            counts.queued + counts.processing == 0
        })
        .await;
        stop.add_permits(2);
    };
    beside(workers, produce).await;

    assert!(!cleaner.is_finished(), "it was there to the end");
    cleaner.abort();
    let mut seen = seen.lock().expect("no panic while noting").clone();
    seen.sort_unstable();
    assert_eq!(seen, (0..4 * EACH).collect::<Vec<_>>());
}

async fn cleans_for_ever(queue: Queue) {
    let none_kept = Retention {
        done: Duration::ZERO,
        cancelled: Duration::ZERO,
        dead_letter: Duration::ZERO,
    };
    loop {
        let pruned = queue.store().prune(&none_kept, 10).await;
        pruned.expect("it answers");
        tokio::task::yield_now().await;
    }
}

async fn o_016_a_job_that_takes_its_process_down_is_not_taken_for_done(world: &World) {
    let queue = world.open().await;
    let sent = takes_its_process_down::enqueue(&queue).await;
    let id = sent.expect("enqueued").id;

    let mut deaths = 0;
    while !Child::start("dies", world).ended().await.success() {
        deaths += 1;
        let job = job(&queue, id).await;
        assert_eq!((job.state, job.attempts), (JobState::Processing, deaths));
    }

    assert_eq!(deaths, 2);
    let job = job(&queue, id).await;
    assert_eq!((job.state, job.attempts), (JobState::Done, 3));
    let attempts = queue.attempts(id).await.expect("it answers");
    let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome).collect();
    let (lost, success) = (Some(OutcomeKind::Lost), Some(OutcomeKind::Success));
    assert_eq!(outcomes, [lost, lost, success]);
}

#[job(retries = 9)]
async fn starts_late(runs: Data<AtomicUsize>) {
    runs.fetch_add(1, Ordering::Relaxed);
}

/// A worker that stands still between its claim and the first handler, while a peer that looks
/// for lost jobs all the time passes twenty times.
async fn o_017_a_job_that_was_taken_and_not_started_is_left_alone_until_its_lease_ends(
    world: &World,
) {
    let lease = Duration::from_secs(60);
    let ((slow, halts), (peer, passes)) = (world.open_faulty().await, world.open_faulty().await);
    let runs = Data::new(AtomicUsize::new(0));
    let (stop_slow, stop_peer) = (Notify::new(), Notify::new());
    let worker = |queue| {
        let worker = Worker::builder(queue).job::<StartsLateJob>();
        worker.shared(runs.clone()).lease(lease)
    };
    let sent = starts_late::enqueue(&slow).await.expect("enqueued");
    for verb in [Verb::Claim, Verb::Exchange] {
        halts.hold_reply(verb);
    }

    let scenario = async {
        tokio::select! {
            () = halts.held_reach(Verb::Claim, 1) => {}
            () = halts.held_reach(Verb::Exchange, 1) => {}
        }
        let taken = job(&peer, sent.id).await;
        assert_eq!((taken.state, taken.attempts), (JobState::Processing, 1));
        let rescuer = worker(&peer).rescue_every(Duration::from_millis(1));
        let watch = async {
            passes.calls_reach(Verb::Expired, 20).await;
            stop_peer.notify_one();
        };
        beside(rescuer.run_until(stop_peer.notified()), watch).await;
        assert_eq!(job(&peer, sent.id).await, taken, "nobody has touched it");
        let ended = finals(&[&slow], 1);
        for verb in [Verb::Claim, Verb::Exchange] {
            halts.release(verb);
        }
        ended.await;
        stop_slow.notify_one();
    };
    beside(worker(&slow).run_until(stop_slow.notified()), scenario).await;

    let job = job(&peer, sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.crashes),
        (JobState::Done, 1, 0)
    );
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}
