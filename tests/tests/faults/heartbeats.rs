//! Leases of many jobs beside one that goes wrong: threads that are blocked, or one lease that is
//! taken away.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use queue_runtime::job::{Change, JobEvent, OutcomeKind, Settlement};
use queue_runtime::{Data, JobState, Worker, job};
use tokio::sync::{Notify, Semaphore};

use crate::long_jobs::ends_of_its_lease;
use crate::world::{World, beside, eventually, finals, job};

on! { memory:
    real {
        o_010_twenty_jobs_lose_no_lease_while_every_thread_is_blocked
        o_011_a_lease_that_is_taken_away_stops_no_handler_but_its_own
    }
}

on! { sqlite:
    real {
        o_010_twenty_jobs_lose_no_lease_while_every_thread_is_blocked
        o_011_a_lease_that_is_taken_away_stops_no_handler_but_its_own
    }
}

on! { postgres:
    real {
        o_010_twenty_jobs_lose_no_lease_while_every_thread_is_blocked
        o_011_a_lease_that_is_taken_away_stops_no_handler_but_its_own
    }
}

const LEASE: Duration = Duration::from_secs(3);

/// What blocks a thread until the scenario opens it.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn pass(&self) {
        let is_open = self.is_open.lock().expect("no panic at the gate");
        let passed = self.opened.wait_while(is_open, |is_open| !*is_open);
        drop(passed.expect("no panic at the gate"));
    }

    pub(crate) fn open(&self) {
        *self.is_open.lock().expect("no panic at the gate") = true;
        self.opened.notify_all();
    }
}

#[derive(Default)]
struct Started {
    yielding: AtomicUsize,
    blocking: AtomicUsize,
}

#[job(timeout = "none", retries = 9)]
async fn yields(go: Data<Semaphore>, started: Data<Started>) {
    started.yielding.fetch_add(1, Ordering::SeqCst);
    go.acquire().await.expect("never closed").forget();
}

#[job(timeout = "none", retries = 9)]
async fn blocks_a_thread(gate: Data<Gate>, started: Data<Started>) {
    started.blocking.fetch_add(1, Ordering::SeqCst);
    // No await in between.
    gate.pass();
}

/// A job of nobody's, whose worker is there for its rescues.
#[job]
async fn is_never_sent() {}

/// A worker on a runtime of its own with two threads, both blocked for two leases; a peer beside it
/// looks for lost jobs all the time.
async fn o_010_twenty_jobs_lose_no_lease_while_every_thread_is_blocked(world: &World) {
    let (queue, watcher) = (world.open().await, world.open().await);
    let sent = queue.enqueue_all((0..20).map(|_| YieldsJob {})).await;
    let mut ids: Vec<_> = sent.expect("enqueued").into_iter().flatten().collect();
    let (go, gate) = (Data::new(Semaphore::new(0)), Data::new(Gate::default()));
    let (started, stop) = (Data::new(Started::default()), Data::new(Notify::new()));
    let worker = Worker::builder(&queue)
        .job::<YieldsJob>()
        .job::<BlocksAThreadJob>()
        .shared(go.clone())
        .shared(gate.clone())
        .shared(started.clone())
        .lease(LEASE)
        .heartbeat(LEASE / 10);
    let stopped = stop.clone();
    let blocked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("the system gives a test its threads");
        // On the threads that will be blocked, not on this one.
        let worker = async move { worker.run_until(stopped.notified()).await };
        runtime.block_on(async { runtime.spawn(worker).await.expect("no panic") })
    });
    let peer = Worker::builder(&watcher)
        .job::<IsNeverSentJob>()
        .rescue_every(LEASE / 30);
    let peer_stops = Notify::new();

    let watch = async {
        eventually(async || started.yielding.load(Ordering::SeqCst) == 20).await;
        for _ in 0..2 {
            ids.push(blocks_a_thread::enqueue(&watcher).await.expect("enqueued"));
        }
        eventually(async || started.blocking.load(Ordering::SeqCst) == 2).await;
        join_all(ids.iter().map(|sent| {
            ends_of_its_lease(&watcher, sent.id, |ends| {
                let (first, last) = (ends.first(), ends.last());
                first
                    .zip(last)
                    .is_some_and(|(first, last)| last.since(*first) > LEASE * 2)
            })
        }))
        .await;
        gate.open();
        go.add_permits(20);
        eventually(async || watcher.counts().await.expect("it answers").done == 22).await;
        peer_stops.notify_one();
    };
    beside(peer.run_until(peer_stops.notified()), watch).await;
    stop.notify_one();
    let ended = tokio::task::spawn_blocking(|| blocked.join()).await;
    let ended = ended.expect("joined").expect("no panic");
    ended.expect("the worker ends well");

    for sent in ids {
        let job = job(&watcher, sent.id).await;
        let standing = (job.state, job.attempts, job.crashes);
        assert_eq!(standing, (JobState::Done, 1, 0));
    }
}

/// Notes of a handler whether it came to its end or was dropped before.
struct End {
    n: u64,
    is_reached: bool,
    ends: Data<Mutex<Vec<(u64, bool)>>>,
}

impl Drop for End {
    fn drop(&mut self) {
        let mut ends = self.ends.lock().expect("no panic while noting");
        ends.push((self.n, self.is_reached));
    }
}

#[job(timeout = "none", retries = 9)]
async fn holds_on(n: u64, go: Data<Semaphore>, ends: Data<Mutex<Vec<(u64, bool)>>>) {
    let is_reached = false;
    let mut end = End {
        n,
        is_reached,
        ends,
    };
    go.acquire().await.expect("never closed").forget();
    end.is_reached = true;
}

async fn o_011_a_lease_that_is_taken_away_stops_no_handler_but_its_own(world: &World) {
    const JOBS: u64 = 50;
    const STOLEN: u64 = 7;
    let (queue, thief) = (world.open().await, world.open().await);
    let sent = queue.enqueue_all((0..JOBS).map(|n| HoldsOnJob { n })).await;
    let mut ids: Vec<_> = sent.expect("enqueued").into_iter().flatten().collect();
    let go = Data::new(Semaphore::new(0));
    let ends = Data::new(Mutex::new(Vec::<(u64, bool)>::new()));
    let worker = Worker::builder(&queue)
        .job::<HoldsOnJob>()
        .shared(go.clone())
        .shared(ends.clone())
        .concurrency(50)
        .lease(LEASE)
        .heartbeat(LEASE / 10);
    let stolen = ids.remove(STOLEN as usize).id;

    let watch = async {
        eventually(async || thief.counts().await.expect("it answers").processing == JOBS).await;
        let mut events = queue.events();
        let held = job(&thief, stolen).await;
        let token = held.lock_token.expect("it is claimed");
        let taken = Settlement {
            id: stolen,
            token,
            change: Change::Queued {
                delay: Duration::from_hours(1),
            },
            outcome: OutcomeKind::Lost,
            error: None,
            attempts: 1,
            crashes: 1,
            snoozes: 0,
            only_if_expired: false,
        };
        thief.store().settle(&[taken]).await.expect("it answers");
        let lost = JobEvent::LeaseLost { id: stolen, token };
        while events.recv().await.expect("the queue lives on") != lost {}
        // The others' are renewed for longer than what was left of any of them.
        join_all(ids.iter().map(|sent| {
            ends_of_its_lease(&thief, sent.id, |ends| {
                let (first, last) = (ends.first(), ends.last());
                first
                    .zip(last)
                    .is_some_and(|(first, last)| last.since(*first) > LEASE)
            })
        }))
        .await;
        let dropped = ends.lock().expect("no panic while noting").clone();
        assert_eq!(dropped, [(STOLEN, false)]);
        let ended = finals(&[&queue], ids.len());
        go.add_permits(ids.len());
        ended.await;
    };
    worker.run_until(watch).await.expect("ends well");

    let unfinished = |ends: &[(u64, bool)]| ends.iter().filter(|(_, reached)| !reached).count();
    let ends = ends.lock().expect("no panic while noting").clone();
    assert_eq!((ends.len(), unfinished(&ends)), (50, 1));
    for sent in ids {
        let job = job(&thief, sent.id).await;
        assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    }
    let job = job(&thief, stolen).await;
    assert_eq!((job.state, job.attempts), (JobState::Queued, 1));
}
