//! One job run twice: an old list of lost jobs, heartbeats that get lost, a removed job that
//! comes back.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use queue_runtime::job::{JobEvent, NewJob, OutcomeKind, Settled};
use queue_runtime::{Data, JobContext, JobState, Queue, Worker, job};
use queue_testkit::Verb;
use queue_testkit::conformance::jobs::{LEASE, done, rescue};
use queue_testkit::faulty::Faulty;
use tokio::sync::Notify;

use crate::world::{Subject, World, beside, claim_as, eventually, finals, job, seam, together};

on! { memory:
    real {
        o_001_a_job_that_ended_while_a_rescue_had_it_on_its_list_stays_ended
        o_002_a_worker_whose_heartbeats_are_lost_cannot_end_the_job_a_second_time
    }
    by_hand { o_005_a_rescue_brings_back_no_job_that_ended_and_was_removed }
}

on! { sqlite:
    real {
        o_001_a_job_that_ended_while_a_rescue_had_it_on_its_list_stays_ended
        o_002_a_worker_whose_heartbeats_are_lost_cannot_end_the_job_a_second_time
    }
    by_hand { o_005_a_rescue_brings_back_no_job_that_ended_and_was_removed }
}

on! { postgres:
    real {
        o_001_a_job_that_ended_while_a_rescue_had_it_on_its_list_stays_ended
        o_002_a_worker_whose_heartbeats_are_lost_cannot_end_the_job_a_second_time
    }
    by_hand { o_005_a_rescue_brings_back_no_job_that_ended_and_was_removed }
}

#[job(retries = 9)]
async fn is_held() {}

/// A worker that serves another queue rescues all the same.
#[job(queue = "elsewhere")]
async fn is_elsewhere() {}

/// Thirty rounds; the order of events is fixed, so that more of them would say the same. Each look
/// for lost jobs stops twice: before it looks, and when it has its list.
async fn o_001_a_job_that_ended_while_a_rescue_had_it_on_its_list_stays_ended(world: &World) {
    let (_, lists) = world.open_faulty().await;
    let looks = Faulty::new(Arc::new(lists.clone()));
    let queue = Queue::on_store(Arc::new(looks.clone()), seam());
    let holder = world.open().await;
    let mut events = queue.events();
    let moment = Duration::from_millis(1);
    let stop = Notify::new();
    let rescuer = Worker::builder(&queue)
        .job::<IsElsewhereJob>()
        .rescue_every(moment)
        .run_until(stop.notified());

    looks.hold(Verb::Expired);
    let rounds = async {
        for _ in 0..30 {
            looks.held_reach(Verb::Expired, 1).await;
            let sent = is_held::enqueue(&holder).await.expect("enqueued");
            let mut runs = claim_as(&holder, "late@1", "is_held", moment).await;
            let expired = async || holder.store().expired(9).await.expect("it answers");
            eventually(async || !expired().await.is_empty()).await;

            lists.hold_reply(Verb::Expired);
            looks.release(Verb::Expired);
            lists.held_reach(Verb::Expired, 1).await;
            let settled = holder.store().settle(&[done(&runs.remove(0))]).await;
            let applied = [Settled::Applied(JobState::Done)];
            assert_eq!(settled.expect("it answers"), applied);
            looks.hold(Verb::Expired);
            lists.release(Verb::Expired);

            // The next look begins once this one has come to its end.
            looks.held_reach(Verb::Expired, 1).await;
            let ended = job(&holder, sent.id).await;
            assert_eq!(
                (ended.state, ended.attempts, ended.crashes),
                (JobState::Done, 1, 0)
            );
        }
        stop.notify_one();
    };
    beside(rescuer, rounds).await;

    let rescued = |event: &JobEvent| matches!(event, JobEvent::Rescued { .. });
    let told = std::iter::from_fn(|| events.try_recv().ok()).find(rescued);
    assert_eq!(told, None, "what was refused is told of as done");
}

#[job(timeout = "none", retries = 9)]
async fn blocks_at_first(ctx: JobContext, started: Data<Notify>, go: Data<Gate>) {
    if ctx.attempt() == 1 {
        started.notify_one();
        // Blocks its thread, so that the worker cannot stop it.
        let gate = go.0.lock().expect("one at a time");
        gate.recv().expect("the test says go");
    }
}

struct Gate(Mutex<mpsc::Receiver<()>>);

async fn o_002_a_worker_whose_heartbeats_are_lost_cannot_end_the_job_a_second_time(world: &World) {
    let lease = Duration::from_millis(600);
    let ((late, faults), peer) = (world.open_faulty().await, world.open().await);
    let (say_go, go) = mpsc::channel();
    let (started, go) = (Data::new(Notify::new()), Data::new(Gate(Mutex::new(go))));
    let worker = |queue| {
        let worker = Worker::builder(queue).job::<BlocksAtFirstJob>();
        let worker = worker.shared(started.clone()).shared(go.clone());
        // No slot is left for the second attempt, so the peer makes it.
        worker.lease(lease).heartbeat(lease / 4).concurrency(1)
    };
    let (mut by_late, mut by_peer) = (late.events(), peer.events());
    let mut refusals = late.events();
    let sent = blocks_at_first::enqueue(&peer).await.expect("enqueued");

    faults.hold(Verb::Extend);
    let stop = Notify::new();
    let frozen = worker(&late).run_until(stop.notified());
    let meanwhile = async {
        started.notified().await;
        let healthy = worker(&peer).rescue_every(lease / 10);
        let ended = healthy.run_until(finals(&[&peer], 1)).await;
        ended.expect("ends well");
        say_go.send(()).expect("the handler waits");
        loop {
            match refusals.recv().await.expect("it tells") {
                JobEvent::SettledStale { .. } | JobEvent::LeaseLost { .. } => break,
                JobEvent::Settled { state, .. } => panic!("its end is recorded: {state}"),
                _ => {}
            }
        }
        faults.release(Verb::Extend);
        stop.notify_one();
    };
    beside(frozen, meanwhile).await;

    let ended = job(&peer, sent.id).await;
    assert_eq!((ended.state, ended.attempts), (JobState::Done, 2));
    let attempts = peer.attempts(sent.id).await.expect("it answers");
    let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(
        outcomes,
        [OutcomeKind::Lost, OutcomeKind::Success].map(Some)
    );
    let mut finals = 0;
    for events in [&mut by_late, &mut by_peer] {
        while let Ok(event) = events.try_recv() {
            let is_final = matches!(event, JobEvent::Settled { state, .. } if state.is_final());
            finals += usize::from(is_final);
        }
    }
    assert_eq!(finals, 1, "one end is told");
}

/// Settlements, removals and rescues of the same runs at once, twenty times.
async fn o_005_a_rescue_brings_back_no_job_that_ended_and_was_removed(s: &Subject) {
    const JOBS: usize = 6;
    for _ in 0..20 {
        let jobs: Vec<NewJob> = (0..JOBS).map(|_| s.job()).collect();
        s.insert(&jobs).await;
        let runs = s.claim_all().await;
        s.advance(LEASE);

        let answers = together(JOBS * 2, |index| {
            let (store, run) = (s.store(), runs[index / 2].clone());
            async move {
                if index % 2 == 1 {
                    return store.settle(&[rescue(&run)]).await.expect("it answers")[0];
                }
                let settled = store.settle(&[done(&run)]).await.expect("it answers")[0];
                let at_once = queue_runtime::Retention {
                    done: Duration::ZERO,
                    cancelled: Duration::ZERO,
                    dead_letter: Duration::ZERO,
                };
                store.prune(&at_once, JOBS).await.expect("it answers");
                settled
            }
        })
        .await;

        for (run, answers) in runs.iter().zip(answers.chunks(2)) {
            let one = answers.iter().filter(|a| **a != Settled::Stale).count();
            assert_eq!(one, 1, "{} ended and was rescued", run.id);
        }
        let ended = answers.iter().step_by(2);
        let ended = ended.filter(|a| **a != Settled::Stale).count();
        let again = s.claim_all().await;
        assert_eq!(again.len(), JOBS - ended);
        for run in again {
            assert_eq!(run.payload, jobs[0].payload);
            s.apply(done(&run)).await;
        }
        s.prune(Duration::ZERO, JOBS).await;
        let left = s.store().counts().await.expect("it answers").total();
        assert_eq!(left, 0);
        s.advance(LEASE);
        assert_eq!(s.expired(9).await, []);
        assert_eq!(s.claim_all().await, []);
    }
}
