//! What a handler says, and what becomes of its job.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use queue_runtime::job::{DeadReason, OutcomeKind};
use queue_runtime::{
    Data, JobContext, JobError, JobResultExt, JobState, Permanent, StatusError, Worker, job,
};

use crate::world::World;

type Log = Data<Mutex<Vec<String>>>;

fn log() -> Log {
    Data::new(Mutex::default())
}

fn said(log: &Log) -> Vec<String> {
    log.lock().expect("no panic while logging").clone()
}

#[job(retries = 5, timeout = "60s", dedupe = "user_id")]
async fn send_welcome(
    ctx: JobContext,
    #[inject] log: Log,
    user_id: i64,
    email: &str,
) -> Result<(), JobError> {
    let line = format!(
        "{user_id} {email} attempt {} of {}",
        ctx.attempt(),
        ctx.max_attempts()
    );
    log.lock().expect("no panic while logging").push(line);
    Ok(())
}

#[tokio::test]
async fn a_typed_job_runs_with_its_arguments() {
    let world = World::new();
    let log = log();
    let sent = send_welcome::enqueue(&world.queue, 42, "ada@example.org")
        .await
        .expect("enqueued");

    let worker = Worker::builder(&world.queue)
        .job::<SendWelcomeJob>()
        .shared(log.clone());
    world.run(worker, &[sent.id]).await;

    assert_eq!(said(&log), ["42 ada@example.org attempt 1 of 6"]);
    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.last_error),
        (JobState::Done, 1, None)
    );
    assert_eq!((job.locked_by, job.locked_until), (None, None));
}

#[job(retries = 2, backoff = "fixed(5s)")]
async fn fails_by_plan(attempts: u32, tries: Data<AtomicU32>) -> Result<(), std::io::Error> {
    match tries.fetch_add(1, Ordering::Relaxed) < attempts {
        true => Err(std::io::Error::other("no route to host")),
        false => Ok(()),
    }
}

async fn failing(attempts: u32) -> (World, queue_runtime::JobId) {
    let world = World::new();
    let sent = fails_by_plan::enqueue(&world.queue, attempts)
        .await
        .expect("enqueued");
    let worker = Worker::builder(&world.queue)
        .job::<FailsByPlanJob>()
        .data(AtomicU32::new(0));
    world.run(worker, &[sent.id]).await;
    (world, sent.id)
}

#[tokio::test]
async fn an_error_is_tried_again_after_its_backoff() {
    let (world, id) = failing(2).await;

    let job = world.job(id).await;
    assert_eq!((job.state, job.attempts), (JobState::Done, 3));
    let attempts = world.queue.attempts(id).await.expect("the store answers");
    let results: Vec<_> = attempts.iter().map(|a| (a.number, a.outcome)).collect();
    let (retry, success) = (Some(OutcomeKind::Retry), Some(OutcomeKind::Success));
    assert_eq!(results, [(1, retry), (2, retry), (3, success)]);
    assert_eq!(attempts[0].error.as_deref(), Some("no route to host"));
    for pair in attempts.windows(2) {
        let waited = pair[1]
            .started_at
            .since(pair[0].finished_at.expect("it has ended"));
        assert_eq!(waited, Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_job_whose_attempts_are_used_up_becomes_a_dead_letter() {
    let (world, id) = failing(3).await;

    let job = world.job(id).await;
    assert_eq!((job.state, job.attempts), (JobState::DeadLetter, 3));
    assert_eq!(job.dead_reason, Some(DeadReason::AttemptsExhausted));
    assert_eq!(job.last_error.as_deref(), Some("no route to host"));
}

#[tokio::test]
async fn a_dead_letter_can_be_replayed_after_the_fix() {
    let (world, id) = failing(3).await;

    world.queue.replay(id).await.expect("a dead letter");
    let fixed = Worker::builder(&world.queue)
        .job::<FailsByPlanJob>()
        .data(AtomicU32::new(9));
    world.run(fixed, &[id]).await;

    let job = world.job(id).await;
    assert_eq!(
        (job.state, job.attempts, job.dead_reason),
        (JobState::Done, 1, None)
    );
}

#[job(retries = 1, timeout = "30s", backoff = "fixed(1s)")]
async fn hangs() {
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_handler_that_hangs_is_cut_and_tried_again() {
    let world = World::new();
    let sent = hangs::enqueue(&world.queue).await.expect("enqueued");

    world
        .run(Worker::builder(&world.queue).job::<HangsJob>(), &[sent.id])
        .await;

    let job = world.job(sent.id).await;
    assert_eq!((job.state, job.attempts), (JobState::DeadLetter, 2));
    assert_eq!(job.last_error.as_deref(), Some("timed out after 30s"));
    let attempts = world
        .queue
        .attempts(sent.id)
        .await
        .expect("the store answers");
    for attempt in attempts {
        let took = attempt
            .finished_at
            .expect("it has ended")
            .since(attempt.started_at);
        assert_eq!(took, Duration::from_secs(30));
    }
}

#[job(retries = 0)]
async fn panics(how: String) {
    match how.as_str() {
        "text" => panic!("a plain text"),
        "format" => panic!("a formatted {how}"),
        _ => std::panic::panic_any(42),
    }
}

#[tokio::test]
async fn a_panic_fails_its_own_attempt_only() {
    let world = World::new();
    let mut jobs = Vec::new();
    for how in ["text", "format", "other"] {
        jobs.push(
            panics::enqueue(&world.queue, how.to_owned())
                .await
                .expect("enqueued")
                .id,
        );
    }

    world
        .run(
            Worker::builder(&world.queue)
                .job::<PanicsJob>()
                .concurrency(1),
            &jobs,
        )
        .await;

    let mut errors = Vec::new();
    for id in jobs {
        errors.push(world.job(id).await.last_error.expect("an error"));
    }
    let expected = [
        "panicked: a plain text",
        "panicked: a formatted format",
        "panicked: a value that is no text",
    ];
    assert_eq!(errors, expected);
}

#[derive(Debug, thiserror::Error, queue_runtime::Classify)]
enum MailError {
    #[error("mailbox full")]
    Full,
    #[error("no such address")]
    #[job(permanent)]
    NoAddress,
}

#[job(retries = 0)]
async fn says(what: String) -> Result<(), JobError> {
    let io = || std::io::Error::other("broken pipe");
    Err(match what.as_str() {
        "io" => io().into(),
        "permanent" => JobError::permanent("bad request"),
        "permanent result" => Err::<(), _>(io()).permanent().expect_err("an error"),
        "marked" => Permanent::new("marked").into(),
        "cancel" => JobError::cancel("order withdrawn"),
        "404" => StatusError(404).into(),
        "429" => StatusError(429).into(),
        other => JobError::retry(format!("unknown {other}")),
    })
}

#[job(retries = 0)]
async fn classifies(exists: bool) -> Result<(), MailError> {
    Err(if exists {
        MailError::Full
    } else {
        MailError::NoAddress
    })
}

#[tokio::test]
async fn what_an_error_says_decides_between_retry_and_dead_letter() {
    use DeadReason::{AttemptsExhausted as Retried, Permanent as Never};
    let world = World::new();
    let worker = || {
        Worker::builder(&world.queue)
            .job::<SaysJob>()
            .job::<ClassifiesJob>()
    };
    let mut reasons = Vec::new();
    for what in [
        "io",
        "permanent",
        "permanent result",
        "marked",
        "cancel",
        "404",
        "429",
        "x",
    ] {
        let sent = says::enqueue(&world.queue, what.to_owned())
            .await
            .expect("enqueued");
        world.run(worker(), &[sent.id]).await;
        reasons.push(world.job(sent.id).await.dead_reason);
    }
    for exists in [true, false] {
        let sent = classifies::enqueue(&world.queue, exists)
            .await
            .expect("enqueued");
        world.run(worker(), &[sent.id]).await;
        reasons.push(world.job(sent.id).await.dead_reason);
    }

    let (retried, never) = (Some(Retried), Some(Never));
    let expected = [
        retried, never, never, never, None, never, retried, retried, retried, never,
    ];
    assert_eq!(reasons, expected);
}

#[job(retries = 0)]
async fn snoozes_twice(ctx: JobContext, calls: Data<AtomicU32>) -> Result<(), JobError> {
    match calls.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err(JobError::snooze(Duration::from_mins(10))),
        _ if ctx.attempt() == 1 => Ok(()),
        _ => Err(JobError::permanent("a snooze has used an attempt")),
    }
}

#[tokio::test]
async fn a_snooze_puts_off_without_using_an_attempt() {
    let world = World::new();
    let sent = snoozes_twice::enqueue(&world.queue)
        .await
        .expect("enqueued");

    let worker = Worker::builder(&world.queue)
        .job::<SnoozesTwiceJob>()
        .data(AtomicU32::new(0));
    world.run(worker, &[sent.id]).await;

    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts, job.snoozes),
        (JobState::Done, 1, 2)
    );
    let took = job.finished_at.expect("final").since(job.created_at);
    assert_eq!(took, Duration::from_mins(20));
}

#[job(deadline = "1m")]
async fn punctual(#[inject] log: Log) {
    log.lock()
        .expect("no panic while logging")
        .push("ran".to_owned());
}

#[tokio::test]
async fn a_job_past_its_deadline_is_not_run() {
    let world = World::new();
    let log = log();
    let sent = punctual::enqueue(&world.queue).await.expect("enqueued");
    world.seam.advance(Duration::from_secs(61));

    let worker = Worker::builder(&world.queue)
        .job::<PunctualJob>()
        .shared(log.clone());
    world.run(worker, &[sent.id]).await;

    let job = world.job(sent.id).await;
    assert_eq!((job.state, job.attempts), (JobState::DeadLetter, 0));
    assert_eq!(job.dead_reason, Some(DeadReason::Deadline));
    assert_eq!(said(&log), Vec::<String>::new());
}

#[tokio::test]
async fn a_payload_that_cannot_be_read_is_a_dead_letter_that_keeps_it() {
    let world = World::new();
    let sent = world
        .queue
        .enqueue(SaysJob {
            what: "x".to_owned(),
        })
        .await
        .expect("enqueued");
    let stored = world.job(sent.id).await;
    let broken = queue_runtime::job::NewJob {
        id: queue_runtime::seam::uuid_v7(1, 1),
        job_type: stored.job_type.clone(),
        queue: stored.queue.clone(),
        payload: r#"{"what":7}"#.to_owned(),
        payload_schema: 1,
        priority: 0,
        max_attempts: 5,
        due: queue_runtime::job::Due::Now,
        deadline: None,
        dedupe: None,
        idempotency: None,
        cache: None,
        trace_context: None,
    };
    world
        .queue
        .store()
        .insert(std::slice::from_ref(&broken))
        .await
        .expect("stored");

    world
        .run(Worker::builder(&world.queue).job::<SaysJob>(), &[broken.id])
        .await;

    let job = world.job(broken.id).await;
    assert_eq!(job.dead_reason, Some(DeadReason::Undecodable));
    assert_eq!(job.payload, r#"{"what":7}"#);
    let error = "decode payload of job type \"says\" (schema 1): $.what: invalid type: integer `7`, \
        expected a string (field `what: String`)";
    assert_eq!(job.last_error.as_deref(), Some(error));
}

#[job]
async fn starts_another(ctx: JobContext) -> Result<(), queue_runtime::EnqueueError> {
    punctual::enqueue(&ctx).await.map(drop)
}

#[tokio::test]
async fn a_handler_enqueues_through_its_context() {
    let world = World::new();
    let log = log();
    starts_another::enqueue(&world.queue)
        .await
        .expect("enqueued");

    let worker = Worker::builder(&world.queue)
        .job::<StartsAnotherJob>()
        .job::<PunctualJob>()
        .shared(log.clone());
    world
        .run_until(worker, async || said(&log).len() == 1)
        .await
        .expect("ends well");
    assert_eq!(
        world.queue.counts().await.expect("the store answers").done,
        2
    );
}

#[tokio::test]
async fn a_job_is_a_plain_function_in_a_unit_test() {
    let log = log();
    send_welcome(JobContext::for_test(), log.clone(), 7, "a@b.example")
        .await
        .expect("it works");
    assert_eq!(said(&log), ["7 a@b.example attempt 1 of 1"]);
}

#[tokio::test]
async fn a_delayed_job_does_not_run_early() {
    let world = World::new();
    let log = log();
    let later = Duration::from_mins(5);
    let sent = send_welcome::enqueue(&world.queue, 1, "a@b.example")
        .delay(later)
        .await;
    let id = sent.expect("enqueued").id;

    let worker = Worker::builder(&world.queue)
        .job::<SendWelcomeJob>()
        .shared(log.clone());
    world.run(worker, &[id]).await;

    let job = world.job(id).await;
    assert_eq!(job.started_at.expect("it ran").since(job.created_at), later);
}

/// An error that names itself as its source, as a careless `Arc` can.
#[derive(Debug)]
struct Endless;

impl std::fmt::Display for Endless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("endless")
    }
}

impl std::error::Error for Endless {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}

/// A panic value that strikes again when it is dropped.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 && !std::thread::panicking() {
            std::panic::panic_any(Bomb(self.0 - 1));
        }
    }
}

#[job(retries = 0)]
async fn from_hell(what: String) -> Result<(), JobError> {
    match what.as_str() {
        "endless" => Err(Endless.into()),
        "bomb" => std::panic::panic_any(Bomb(3)),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn errors_without_end_and_panics_that_strike_twice_end_their_own_attempt_only() {
    let world = World::new();
    let mut jobs = Vec::new();
    for what in ["endless", "bomb", "well"] {
        jobs.push(
            from_hell::enqueue(&world.queue, what.to_owned())
                .await
                .expect("enqueued")
                .id,
        );
    }

    world
        .run(
            Worker::builder(&world.queue)
                .job::<FromHellJob>()
                .concurrency(1),
            &jobs,
        )
        .await;

    let mut ends = Vec::new();
    for id in jobs {
        let job = world.job(id).await;
        ends.push((job.state, job.last_error));
    }
    let dead = |text: &str| (JobState::DeadLetter, Some(text.to_owned()));
    let expected = [
        dead("endless"),
        dead("panicked: a value that is no text"),
        (JobState::Done, None),
    ];
    assert_eq!(ends, expected);
}

#[job(retries = 3, backoff = "fixed(20ms)")]
async fn fails_briefly(tries: Data<AtomicU32>) -> Result<(), std::io::Error> {
    match tries.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err(std::io::Error::other("not yet")),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn a_short_back_off_does_not_wait_for_the_poll() {
    let world = World::new();
    let sent = fails_briefly::enqueue(&world.queue)
        .await
        .expect("enqueued");
    let worker = Worker::builder(&world.queue)
        .job::<FailsBrieflyJob>()
        .data(AtomicU32::new(0))
        .poll(Duration::from_secs(60));
    world.run(worker, &[sent.id]).await;

    let attempts = world
        .queue
        .attempts(sent.id)
        .await
        .expect("the store answers");
    let first = attempts[0].finished_at.expect("it has ended");
    assert_eq!(
        attempts[2].started_at.since(first),
        Duration::from_millis(40)
    );
}
