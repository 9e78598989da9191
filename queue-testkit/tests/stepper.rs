//! A program's own jobs, run step by step on a queue whose time stands still.

use std::sync::Mutex;
use std::time::Duration;

use queue_runtime::job::JobResult;
use queue_runtime::store::ClaimRequest;
use queue_runtime::{Data, JobContext, JobError, JobState, job};
use queue_testkit::TestQueue;
use queue_testkit::conformance::jobs::worker;
use queue_testkit::{Verb, assert_enqueued, assert_not_enqueued};

/// What the handlers did, in order.
type Ledger = Mutex<Vec<i64>>;

#[job(name = "note")]
async fn note(number: i64, ledger: Data<Ledger>) -> Result<(), JobError> {
    ledger.lock().expect("no panic").push(number);
    Ok(())
}

#[job(name = "fail_until", retries = 4, backoff = "fixed(10s)")]
async fn fail_until(attempt: u32, ctx: JobContext) -> Result<(), JobError> {
    if ctx.attempt() < attempt {
        return Err(JobError::retry("not yet"));
    }
    Ok(())
}

fn numbers(ledger: &Data<Ledger>) -> Vec<i64> {
    ledger.lock().expect("no panic").clone()
}

#[tokio::test]
async fn a_drain_runs_what_is_due_and_leaves_the_rest() {
    let (test, ledger) = (TestQueue::new(), Data::new(Ledger::default()));
    for number in [1, 2, 3] {
        note::enqueue(test.queue(), number).await.expect("enqueued");
    }
    let minute = Duration::from_secs(60);
    note::enqueue(test.queue(), 4)
        .delay(minute)
        .await
        .expect("enqueued");

    let runs = test
        .drain(|worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");

    assert_eq!(runs.len(), 3);
    assert!(
        runs.iter().all(|run| run.result == JobResult::Success),
        "{runs:?}"
    );
    let mut seen = numbers(&ledger);
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3]);
    assert_enqueued!(test, NoteJob { number: 4 });

    test.advance(minute);
    let runs = test
        .drain(|worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");
    assert_eq!(runs.len(), 1);
    assert_not_enqueued!(test, NoteJob { .. });
}

#[tokio::test]
async fn one_job_runs_at_a_time_in_order() {
    let (test, ledger) = (TestQueue::new(), Data::new(Ledger::default()));
    for number in [1, 2, 3] {
        note::enqueue(test.queue(), number).await.expect("enqueued");
    }

    for number in [1, 2, 3] {
        let run = test
            .run_one(|worker| worker.shared(ledger.clone()))
            .await
            .expect("it runs");
        assert_eq!(run.map(|run| run.state), Some(JobState::Done));
        assert_eq!(numbers(&ledger).last(), Some(&number));
    }

    let none = test
        .run_one(|worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");
    assert_eq!(none, None);
    assert_eq!(numbers(&ledger), [1, 2, 3]);
}

#[tokio::test]
async fn a_drain_of_nothing_ends_at_once() {
    let (test, ledger) = (TestQueue::new(), Data::new(Ledger::default()));
    let runs = test
        .drain(|worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");
    assert_eq!(runs, []);
}

#[tokio::test]
async fn a_life_with_retries_takes_no_real_time() {
    let (test, ledger) = (TestQueue::new(), Data::new(Ledger::default()));
    let sent = fail_until::enqueue(test.queue(), 4)
        .await
        .expect("enqueued");
    let start = test.seam().clone();

    let runs = test
        .run_lives(100, |worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");

    let results: Vec<_> = runs.iter().map(|run| (run.attempt, run.result)).collect();
    let (retry, success) = (JobResult::Retry, JobResult::Success);
    assert_eq!(results, [(1, retry), (2, retry), (3, retry), (4, success)]);
    let job = test
        .queue()
        .job(sent.id)
        .await
        .expect("the store answers")
        .expect("it is known");
    assert_eq!(job.state, JobState::Done);
    use queue_runtime::seam::Seam as _;
    assert!(
        start.elapsed() >= Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_job_whose_settlement_was_lost_on_the_way_is_still_settled_once() {
    let (test, ledger) = (TestQueue::new(), Data::new(Ledger::default()));
    note::enqueue(test.queue(), 7).await.expect("enqueued");
    test.faults().lose_reply_next(Verb::Exchange);
    test.faults().lose_reply_next(Verb::Settle);

    let drained = test.drain(|worker| worker.shared(ledger.clone()));
    let clock = async {
        // The worker pauses after a failure; a minute is longer than any pause.
        test.faults().calls_reach(Verb::Claim, 1).await;
        loop {
            test.seam().sleepers_reach(1).await;
            test.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    let runs = tokio::select! {
        runs = drained => runs.expect("it runs"),
        () = clock => unreachable!("the clock never ends"),
    };

    assert_eq!(numbers(&ledger), [7], "{}", test.history());
    let jobs = test.jobs().await.expect("the store answers");
    assert_eq!(jobs[0].state, JobState::Done);
    assert!(runs.len() <= 1, "{runs:?}");
}

#[tokio::test]
async fn a_job_of_a_crashed_worker_runs_again_after_its_lease() {
    let (test, ledger) = (TestQueue::new(), Data::new(Ledger::default()));
    note::enqueue(test.queue(), 5).await.expect("enqueued");
    test.drain(|worker| worker.shared(ledger.clone()).concurrency(1))
        .await
        .expect("it runs");
    note::enqueue(test.queue(), 6).await.expect("enqueued");
    let request = test.faults().last_request().await;
    let crashed = ClaimRequest {
        worker: worker("crashed@1"),
        ..request
    };
    let claimed = test
        .queue()
        .store()
        .claim(&crashed)
        .await
        .expect("the store answers");
    assert_eq!(claimed.len(), 1);

    let early = test
        .drain(|worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");
    assert_eq!(early, [], "another worker holds it");

    test.advance(crashed.lease);
    let late = test
        .run_lives(10, |worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");

    assert_eq!(late.len(), 1, "{}", test.history());
    assert_eq!((late[0].attempt, late[0].result), (2, JobResult::Success));
    assert_eq!(numbers(&ledger), [5, 6]);
}

#[tokio::test]
async fn a_pattern_may_carry_a_condition() {
    let test = TestQueue::new();
    note::enqueue(test.queue(), 42).await.expect("enqueued");

    assert_enqueued!(test, NoteJob { number, .. } if *number > 40);
    assert_not_enqueued!(test, NoteJob { number, .. } if *number > 42);
    assert_not_enqueued!(test, FailUntilJob { .. });
}

#[tokio::test]
#[should_panic(expected = "note {\"number\":42} due 2026-11-30T00:53:20.123Z")]
async fn a_failing_assertion_lists_what_waits() {
    let test = TestQueue::new();
    note::enqueue(test.queue(), 42).await.expect("enqueued");

    assert_enqueued!(test, NoteJob { number: 43 });
}

#[tokio::test]
async fn a_worker_that_cannot_be_built_says_why() {
    let test = TestQueue::new();
    note::enqueue(test.queue(), 1).await.expect("enqueued");

    let error = test
        .drain(|worker| worker)
        .await
        .expect_err("the ledger is missing");

    assert!(error.to_string().contains("ledger"), "{error}");
}

#[tokio::test]
async fn a_long_drain_tells_every_run() {
    let (test, ledger) = (TestQueue::new(), Data::new(Ledger::default()));
    let jobs = (0..6_000).map(|number| NoteJob { number });
    test.queue().enqueue_all(jobs).await.expect("enqueued");

    let runs = test
        .drain(|worker| worker.shared(ledger.clone()))
        .await
        .expect("it runs");

    assert_eq!((runs.len(), numbers(&ledger).len()), (6_000, 6_000));
}
