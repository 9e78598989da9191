//! A store that goes away and comes back: work goes on by itself.

use std::sync::Mutex;
use std::time::Duration;

use queue_runtime::job::{Due, JobEvent, NewJob};
use queue_runtime::{Data, JobState, Worker, job};
use queue_testkit::Verb;
use queue_testkit::conformance::jobs::{MS, SECOND};
use tokio::sync::Notify;

use crate::world::{Subject, World, beside};

on! { memory:
    real { o_068_a_worker_goes_on_by_itself_after_each_of_ten_outages }
}

on! { sqlite:
    real { o_068_a_worker_goes_on_by_itself_after_each_of_ten_outages }
    by_hand { o_071_a_delayed_job_is_due_at_its_time_after_its_store_was_opened_again }
}

on! { postgres:
    real { o_068_a_worker_goes_on_by_itself_after_each_of_ten_outages }
    by_hand { o_071_a_delayed_job_is_due_at_its_time_after_its_store_was_opened_again }
}

#[job]
async fn runs_between_outages(n: usize, seen: Data<Mutex<Vec<usize>>>) {
    seen.lock().expect("no panic while noting").push(n);
}

/// In each outage a few calls of every verb that a worker uses fail, at a moment of its own.
async fn o_068_a_worker_goes_on_by_itself_after_each_of_ten_outages(world: &World) {
    const OUTAGES: usize = 10;
    let ((queue, faults), producer) = (world.open_faulty().await, world.open().await);
    let seen = Data::new(Mutex::new(Vec::<usize>::new()));
    let stop = Notify::new();
    let worker = Worker::builder(&queue)
        .job::<RunsBetweenOutagesJob>()
        .shared(seen.clone())
        .poll(Duration::from_millis(20));
    let mut dice = fastrand::Rng::with_seed(68);
    let mut events = queue.events();

    let outages = async {
        for outage in 0..OUTAGES {
            let used = [
                Verb::Claim,
                Verb::Exchange,
                Verb::Settle,
                Verb::NextDue,
                Verb::Expired,
                Verb::Now,
                Verb::Prune,
            ];
            for verb in used {
                faults.fail_next(verb, dice.usize(0..3));
            }
            let sent = runs_between_outages::enqueue(&producer, outage).await;
            let id = sent.expect("enqueued").id;
            loop {
                let event = events.recv().await.expect("the queue lives on");
                let JobEvent::Settled { id: of, state, .. } = event else {
                    continue;
                };
                assert_eq!((of, state), (id, JobState::Done));
                break;
            }
        }
        stop.notify_one();
    };
    beside(worker.run_until(stop.notified()), outages).await;

    let seen = seen.lock().expect("no panic while noting").clone();
    assert_eq!(seen, (0..OUTAGES).collect::<Vec<_>>());
}

async fn o_071_a_delayed_job_is_due_at_its_time_after_its_store_was_opened_again(s: &Subject) {
    let job = NewJob {
        due: Due::After(SECOND * 5),
        ..s.job()
    };
    s.add(&job).await;
    s.advance(SECOND * 2);

    s.reopen().await;

    assert_eq!(s.next_due().await, Some(SECOND * 3));
    s.advance(SECOND * 3 - MS);
    assert_eq!(s.claim_all().await, []);
    s.advance(MS);
    assert_eq!(s.take().await.id, job.id);
}
