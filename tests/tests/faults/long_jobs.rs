//! Jobs that last longer than a lease, or start later than one: a lease is renewed in time, and
//! there is none before the start.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use queue_runtime::{Data, JobId, JobState, Queue, Timestamp, Worker, job};
use tokio::sync::Semaphore;

use crate::world::{World, beside, between_looks, eventually, finals, job};

on! { memory:
    real {
        o_003_jobs_that_are_due_after_several_leases_run_once
        o_007_five_hundred_leases_are_renewed_well_before_half_of_them_is_over
    }
}

on! { sqlite:
    real {
        o_003_jobs_that_are_due_after_several_leases_run_once
        o_004_a_job_that_runs_for_five_leases_runs_once
        o_007_five_hundred_leases_are_renewed_well_before_half_of_them_is_over
    }
}

on! { postgres:
    real {
        o_003_jobs_that_are_due_after_several_leases_run_once
        o_004_a_job_that_runs_for_five_leases_runs_once
        o_007_five_hundred_leases_are_renewed_well_before_half_of_them_is_over
    }
}

#[job(retries = 9)]
async fn counts(n: u64, runs: Data<Mutex<Vec<u64>>>) {
    runs.lock().expect("no panic while counting").push(n);
}

/// Two hundred jobs.
async fn o_003_jobs_that_are_due_after_several_leases_run_once(world: &World) {
    const JOBS: u64 = 200;
    let lease = Duration::from_millis(500);
    let queues = [world.open().await, world.open().await];
    let mut ids = Vec::new();
    for n in 0..JOBS {
        let sent = counts::enqueue(&queues[0], n).delay(lease * 3).await;
        ids.push(sent.expect("enqueued").id);
    }
    let runs = Data::new(Mutex::new(Vec::<u64>::new()));
    let all = Semaphore::new(0);
    let told = finals(&[&queues[0], &queues[1]], ids.len());
    let worker = |queue| {
        let worker = Worker::builder(queue)
            .job::<CountsJob>()
            .shared(runs.clone());
        let worker = worker
            .lease(lease)
            .heartbeat(lease / 4)
            .rescue_every(lease / 10);
        let stop = async { all.acquire().await.expect("never closed").forget() };
        worker.poll(lease / 10).run_until(stop)
    };

    let workers = try_join_all((0..4).map(|n| worker(&queues[n % 2])));
    let watch = async {
        told.await;
        all.add_permits(4);
    };
    beside(workers, watch).await;

    let mut runs = runs.lock().expect("no panic while counting").clone();
    runs.sort_unstable();
    assert_eq!(runs, (0..JOBS).collect::<Vec<_>>());
    for id in ids {
        let job = job(&queues[0], id).await;
        assert_eq!((job.state, job.attempts), (JobState::Done, 1));
        assert!(job.started_at >= Some(job.run_at), "{job:?} ran early");
    }
}

#[job(timeout = "none", retries = 9)]
async fn waits(go: Data<Semaphore>, runs: Data<AtomicUsize>) {
    runs.fetch_add(1, Ordering::Relaxed);
    go.acquire().await.expect("never closed").forget();
}

/// Collects the ends of a running job's lease, until they say that `enough` has passed.
pub(crate) async fn ends_of_its_lease(
    queue: &Queue,
    id: JobId,
    enough: impl Fn(&BTreeSet<Timestamp>) -> bool,
) -> BTreeSet<Timestamp> {
    let mut ends = BTreeSet::new();
    while !enough(&ends) {
        let job = job(queue, id).await;
        let runs = job.state == JobState::Processing;
        assert!(runs || ends.is_empty(), "its lease was lost: {job:?}");
        ends.extend(job.locked_until);
        between_looks().await;
    }
    ends
}

async fn o_004_a_job_that_runs_for_five_leases_runs_once(world: &World) {
    let lease = Duration::from_secs(3);
    let queues = [world.open().await, world.open().await];
    let sent = waits::enqueue(&queues[0]).await.expect("enqueued");
    let (go, runs) = (Data::new(Semaphore::new(0)), Data::new(AtomicUsize::new(0)));
    let stop = Semaphore::new(0);
    let workers = queues.each_ref().map(|queue| {
        let worker = Worker::builder(queue).job::<WaitsJob>();
        let worker = worker.shared(go.clone()).shared(runs.clone());
        let worker = worker
            .lease(lease)
            .heartbeat(lease / 10)
            .rescue_every(lease / 10);
        worker.run_until(async { stop.acquire().await.expect("never closed").forget() })
    });
    let watcher = world.open().await;

    let watch = async {
        let span = |ends: &BTreeSet<Timestamp>| match (ends.first(), ends.last()) {
            (Some(first), Some(last)) => last.since(*first),
            _ => Duration::ZERO,
        };
        ends_of_its_lease(&watcher, sent.id, |ends| span(ends) > lease * 5).await;
        let ended = finals(&[&queues[0], &queues[1]], 1);
        go.add_permits(1);
        ended.await;
        stop.add_permits(2);
    };
    beside(try_join_all(workers), watch).await;

    let job = job(&watcher, sent.id).await;
    assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

async fn o_007_five_hundred_leases_are_renewed_well_before_half_of_them_is_over(world: &World) {
    const JOBS: usize = 500;
    let lease = Duration::from_secs(6);
    let (queue, watcher) = (world.open().await, world.open().await);
    let sent = queue.enqueue_all((0..JOBS).map(|_| WaitsJob {})).await;
    let sent = sent.expect("enqueued").into_iter();
    let ids: Vec<_> = sent.map(|sent| sent.expect("no conflict").id).collect();
    let (go, runs) = (Data::new(Semaphore::new(0)), Data::new(AtomicUsize::new(0)));
    let worker = Worker::builder(&queue).job::<WaitsJob>().concurrency(JOBS);
    let worker = worker.shared(go.clone()).shared(runs.clone());
    let worker = worker
        .lease(lease)
        .heartbeat(lease / 8)
        .rescue_every(lease / 10);

    let watch = async {
        eventually(async || watcher.counts().await.expect("it answers").processing == JOBS as u64)
            .await;
        let ends = ids
            .iter()
            .map(|id| ends_of_its_lease(&watcher, *id, |ends| ends.len() > 2));
        for ends in join_all(ends).await {
            let ends: Vec<_> = ends.into_iter().collect();
            for pair in ends.windows(2) {
                let gap = pair[1].since(pair[0]);
                assert!(
                    gap <= lease / 2,
                    "{gap:?} between two renewals of {lease:?}"
                );
            }
        }
        let ended = finals(&[&queue], JOBS);
        go.add_permits(JOBS);
        ended.await;
    };
    worker.run_until(watch).await.expect("ends well");

    assert_eq!(runs.load(Ordering::Relaxed), JOBS);
    for id in ids {
        assert_eq!(job(&queue, id).await.attempts, 1);
    }
}
