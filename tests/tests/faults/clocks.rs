//! Machines whose clocks disagree: the store's clock is the clock.

use std::sync::Arc;
use std::time::Duration;

use queue_runtime::job::{JobRecord, JobState};
use queue_runtime::seam::Seam as _;
use queue_runtime::{Queue, Timestamp, Worker, job};
use queue_testkit::Verb;
use queue_testkit::clock::TestSeam;
use queue_testkit::conformance::jobs::{LEASE, MS, done, of_types};
use queue_testkit::faulty::Faulty;
use tokio::sync::Notify;

use crate::world::{Subject, beside};

on! { memory:
    by_hand {
        o_056_a_worker_whose_clock_runs_ahead_takes_no_job_of_others
        o_056_a_worker_whose_clock_is_behind_takes_over_in_time
        o_057_a_job_enqueued_by_a_machine_whose_clock_is_wrong_is_due_at_once
    }
}

on! { sqlite:
    by_hand {
        o_056_a_worker_whose_clock_runs_ahead_takes_no_job_of_others
        o_056_a_worker_whose_clock_is_behind_takes_over_in_time
        o_057_a_job_enqueued_by_a_machine_whose_clock_is_wrong_is_due_at_once
    }
}

on! { postgres:
    by_hand {
        o_056_a_worker_whose_clock_runs_ahead_takes_no_job_of_others
        o_056_a_worker_whose_clock_is_behind_takes_over_in_time
        o_057_a_job_enqueued_by_a_machine_whose_clock_is_wrong_is_due_at_once
    }
}

const TEN_MINUTES: Duration = Duration::from_mins(10);

/// The clock of another machine.
fn machine_at(now: Timestamp) -> TestSeam {
    let seam = TestSeam::new(2);
    seam.set_wall_clock(now);
    seam
}

#[job(queue = "elsewhere")]
async fn is_of_no_matter() {}

/// Lets a worker on another machine look for lost jobs five times, which takes a minute of its
/// clock and no time of the store's.
async fn looks_for_lost_jobs(s: &Subject, machine: &TestSeam) {
    let looks = Faulty::new(s.store());
    let queue = Queue::on_store(Arc::new(looks.clone()), machine.shared());
    let stop = Notify::new();
    let worker = Worker::builder(&queue)
        .job::<IsOfNoMatterJob>()
        .run_until(stop.notified());
    let watch = async {
        while looks.calls(Verb::Expired) < 5 {
            machine.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        stop.notify_one();
    };
    beside(worker, watch).await;
}

async fn o_056_a_worker_whose_clock_runs_ahead_takes_no_job_of_others(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE - MS);
    let before: JobRecord = s.record(run.id).await;

    let ahead = machine_at(s.now().saturating_add(TEN_MINUTES));
    looks_for_lost_jobs(s, &ahead).await;

    assert_eq!(s.record(run.id).await, before);
    s.apply(done(&run)).await;
}

async fn o_056_a_worker_whose_clock_is_behind_takes_over_in_time(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);

    let behind = machine_at(s.now().saturating_sub(TEN_MINUTES));
    looks_for_lost_jobs(s, &behind).await;

    let job = s.record(run.id).await;
    assert_eq!((job.state, job.crashes), (JobState::Queued, 1));
    assert_eq!(job.run_at, s.now(), "due by the store's clock");
}

#[job]
async fn is_due_at_once() {}

async fn o_057_a_job_enqueued_by_a_machine_whose_clock_is_wrong_is_due_at_once(s: &Subject) {
    let (early, late) = (s.now().saturating_sub(TEN_MINUTES / 2), s.now());
    for wrong in [early, late.saturating_add(TEN_MINUTES / 2)] {
        let machine = machine_at(wrong);
        let queue = Queue::on_store(s.store(), machine.shared());

        let plain = is_due_at_once::enqueue(&queue).await.expect("enqueued");

        let job = s.record(plain.id).await;
        assert_eq!((job.run_at, job.created_at), (s.now(), s.now()));
        let request = of_types(s.request(), &[("is_due_at_once", 1)]);
        let claimed = s.claim(&request).await;
        assert_eq!(claimed.len(), 1);
        s.apply(done(&claimed[0])).await;
    }
    // An instant of its own clock that is past by the store's means at once as well.
    let machine = machine_at(early);
    let queue = Queue::on_store(s.store(), machine.shared());
    let sent = is_due_at_once::enqueue(&queue).run_at(machine.now()).await;
    let job = s.record(sent.expect("enqueued").id).await;
    assert_eq!(job.run_at, s.now());
}
