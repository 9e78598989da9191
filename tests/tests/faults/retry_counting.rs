//! How often a job is tried: as often as it says, whatever its runs come to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use queue_runtime::job::{DeadReason, JobEvent, OutcomeKind};
use queue_runtime::{
    Data, JobError, JobId, JobRecord, JobState, Queue, Worker, WorkerBuilder, job,
};

use crate::child::{Child, HasOneAttemptJob, has_one_attempt, worker};
use crate::world::{Subject, World, eventually, finals, job};

on! { memory:
    by_hand {
        o_025_a_job_that_always_fails_is_tried_five_times_with_growing_pauses
        o_026_an_error_that_names_its_own_delay_uses_up_the_attempts
        o_026_a_snooze_uses_no_attempt_and_has_a_bound_of_its_own
        o_027_retries_are_what_follows_the_first_run
    }
}

on! { sqlite:
    real { o_024_a_deploy_uses_no_attempt_and_a_killed_worker_uses_one }
    by_hand {
        o_025_a_job_that_always_fails_is_tried_five_times_with_growing_pauses
        o_026_an_error_that_names_its_own_delay_uses_up_the_attempts
        o_026_a_snooze_uses_no_attempt_and_has_a_bound_of_its_own
        o_027_retries_are_what_follows_the_first_run
    }
}

on! { postgres:
    real { o_024_a_deploy_uses_no_attempt_and_a_killed_worker_uses_one }
    by_hand {
        o_025_a_job_that_always_fails_is_tried_five_times_with_growing_pauses
        o_026_an_error_that_names_its_own_delay_uses_up_the_attempts
        o_026_a_snooze_uses_no_attempt_and_has_a_bound_of_its_own
        o_027_retries_are_what_follows_the_first_run
    }
}

async fn o_024_a_deploy_uses_no_attempt_and_a_killed_worker_uses_one(world: &World) {
    let queue = world.open().await;
    let sent = has_one_attempt::enqueue(&queue).await.expect("enqueued");

    let mut deployed = Child::start("holds", world);
    deployed.says("running").await;
    assert!(deployed.stop().await.success());

    let waiting = job(&queue, sent.id).await;
    let (attempts, crashes) = (waiting.attempts, waiting.crashes);
    assert_eq!((waiting.state, attempts, crashes), (JobState::Queued, 0, 0));

    let mut killed = Child::start("holds", world);
    killed.says("running").await;
    killed.kill().await;
    let next = || worker(&queue).job::<HasOneAttemptJob>().data(false);
    next()
        .run_until(finals(&[&queue], 1))
        .await
        .expect("ends well");

    let dead = job(&queue, sent.id).await;
    assert_eq!(
        (dead.state, dead.dead_reason),
        (JobState::DeadLetter, Some(DeadReason::AttemptsExhausted))
    );
    // Who ended it stands beside the reason: no failure of the handler's, but a lost worker.
    assert_eq!(
        (dead.attempts, dead.crashes, dead.last_outcome),
        (1, 1, Some(OutcomeKind::Lost))
    );
    let error = dead.last_error.expect("a reason");
    assert!(error.contains("the lease ran out"), "{error}");
    queue.replay(sent.id).await.expect("a dead letter");
    next()
        .run_until(finals(&[&queue], 1))
        .await
        .expect("ends well");
    assert_eq!(job(&queue, sent.id).await.state, JobState::Done);
}

/// More attempts than any job here may have.
const LIVES_MAX: usize = 30;

/// Runs a job's attempts one after another, each as soon as it is due, until the job is final.
async fn run_its_life(
    s: &Subject,
    queue: &Queue,
    id: JobId,
    worker: impl Fn(WorkerBuilder) -> WorkerBuilder,
) -> JobRecord {
    for _ in 0..LIVES_MAX {
        let job = s.record(id).await;
        if job.state.is_final() {
            return job;
        }
        s.advance(job.run_at.since(s.now()));
        let mut events = queue.events();
        let settled =
            async move { while !matches!(events.recv().await, Ok(JobEvent::Settled { .. })) {} };
        let ended = worker(Worker::builder(queue)).run_until(settled).await;
        ended.expect("ends well");
        let free = async || s.record(id).await.state != JobState::Processing;
        eventually(free).await;
    }
    panic!("job {id} lives for ever");
}

fn queue_on(s: &Subject) -> Queue {
    Queue::on_store(s.store(), s.seam().shared())
}

type Runs = Data<AtomicU32>;

fn no_runs() -> Runs {
    Data::new(AtomicU32::new(0))
}

/// As plain as it can be declared.
#[job]
async fn always_fails(#[inject] runs: Runs) -> Result<(), std::io::Error> {
    runs.fetch_add(1, Ordering::Relaxed);
    Err(std::io::Error::other("no such host"))
}

async fn o_025_a_job_that_always_fails_is_tried_five_times_with_growing_pauses(s: &Subject) {
    let (queue, runs) = (queue_on(s), no_runs());
    let sent = always_fails::enqueue(&queue).await.expect("enqueued");

    let worker = |worker: WorkerBuilder| worker.job::<AlwaysFailsJob>().shared(runs.clone());
    let job = run_its_life(s, &queue, sent.id, worker).await;

    assert_eq!(
        (job.state, job.dead_reason),
        (JobState::DeadLetter, Some(DeadReason::AttemptsExhausted))
    );
    assert_eq!((job.attempts, runs.load(Ordering::Relaxed)), (5, 5));
    let attempts = s.attempts(sent.id).await;
    let pauses = attempts.windows(2).map(|pair| {
        let ended = pair[0].finished_at.expect("it has ended");
        pair[1].started_at.since(ended)
    });
    // Two seconds, doubled each time, a fifth more or less.
    for (pause, seconds) in pauses.zip([2, 4, 8, 16]) {
        let plain = Duration::from_secs(seconds);
        assert!(
            pause >= plain * 4 / 5 && pause <= plain * 6 / 5,
            "{pause:?}"
        );
    }
}

#[job(retries = 1)]
async fn asks_for_later(#[inject] runs: Runs) -> Result<(), JobError> {
    runs.fetch_add(1, Ordering::Relaxed);
    let delay = Duration::from_secs(1);
    Err(JobError::retry_after(delay, "too many requests"))
}

async fn o_026_an_error_that_names_its_own_delay_uses_up_the_attempts(s: &Subject) {
    let (queue, runs) = (queue_on(s), no_runs());
    let sent = asks_for_later::enqueue(&queue).await.expect("enqueued");

    let worker = |worker: WorkerBuilder| worker.job::<AsksForLaterJob>().shared(runs.clone());
    let job = run_its_life(s, &queue, sent.id, worker).await;

    assert_eq!(
        (job.state, job.dead_reason),
        (JobState::DeadLetter, Some(DeadReason::AttemptsExhausted))
    );
    assert_eq!((job.attempts, runs.load(Ordering::Relaxed)), (2, 2));
}

#[job(retries = 0)]
async fn snoozes_for_ever(#[inject] runs: Runs) -> Result<(), JobError> {
    runs.fetch_add(1, Ordering::Relaxed);
    Err(JobError::snooze(Duration::from_secs(1)))
}

async fn o_026_a_snooze_uses_no_attempt_and_has_a_bound_of_its_own(s: &Subject) {
    let (queue, runs) = (queue_on(s), no_runs());
    let sent = snoozes_for_ever::enqueue(&queue).await.expect("enqueued");

    let worker = |worker: WorkerBuilder| {
        let worker = worker.job::<SnoozesForEverJob>().shared(runs.clone());
        worker.snoozes_max(3)
    };
    let job = run_its_life(s, &queue, sent.id, worker).await;

    assert_eq!(
        (job.state, job.dead_reason),
        (JobState::DeadLetter, Some(DeadReason::Snoozed))
    );
    assert_eq!((job.attempts, runs.load(Ordering::Relaxed)), (0, 4));
}

#[job(backoff = "fixed(1s)")]
async fn is_counted(n: u32, runs: Data<Mutex<Vec<u32>>>) -> Result<(), std::io::Error> {
    runs.lock().expect("no panic while counting").push(n);
    Err(std::io::Error::other("again"))
}

async fn o_027_retries_are_what_follows_the_first_run(s: &Subject) {
    let queue = queue_on(s);
    for retries in [0, 1, 24] {
        let runs = Data::new(Mutex::new(Vec::<u32>::new()));
        let sent = is_counted::enqueue(&queue, retries).retries(retries).await;
        let id = sent.expect("enqueued").id;

        let worker = |worker: WorkerBuilder| worker.job::<IsCountedJob>().shared(runs.clone());
        let job = run_its_life(s, &queue, id, worker).await;

        let runs = runs.lock().expect("no panic while counting").len();
        assert_eq!(
            (job.state, job.attempts),
            (JobState::DeadLetter, retries + 1)
        );
        assert_eq!(runs, retries as usize + 1);
    }
}
