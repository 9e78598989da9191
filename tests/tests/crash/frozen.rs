//! A worker that stands still for longer than its lease and then goes on.

use queue_runtime::job::OutcomeKind;
use queue_runtime::{JobId, JobState};

use crate::child::holds_on;
use crate::rig::{Rig, Wait};

/// Freezes a worker that holds a job until another one has finished the job, lets it go on, and
/// returns the rig, the job, and the frozen worker's place.
async fn frozen_until_another_is_done(until_let_go: bool) -> (Rig, JobId, usize) {
    let mut rig = Rig::new();
    let queue = rig.open().await;
    let sent = holds_on::enqueue(&queue, until_let_go).await;
    let sent = sent.expect("enqueued");
    queue.close().await;
    let held = rig.start("hold");
    rig.wait(&Wait::Line(held, "holding 1".to_owned())).await;
    rig.freeze_without_lock(held).await;
    let other = rig.start("hold");
    rig.wait(&Wait::Line(other, "final 2".to_owned())).await;
    std::fs::write(rig.path("go"), "").expect("a file");
    rig.thaw(held);
    (rig, sent.id, held)
}

async fn ended_with_the_second_attempt(rig: &Rig, job: JobId) {
    let queue = rig.open().await;
    let record = queue.job(job).await.expect("it answers");
    let record = record.expect("it exists");
    assert_eq!((record.state, record.attempts), (JobState::Done, 2));
    let attempts = queue.attempts(job).await.expect("it answers");
    let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome).collect();
    let expected = [OutcomeKind::Lost, OutcomeKind::Success].map(Some);
    assert_eq!(outcomes, expected);
    queue.close().await;
}

#[tokio::test]
async fn a_frozen_worker_that_comes_back_stops_its_handler() {
    let (mut rig, job, held) = frozen_until_another_is_done(false).await;

    rig.wait(&Wait::Line(held, "dropped 1".to_owned())).await;

    rig.stop_workers_from(held).await;
    ended_with_the_second_attempt(&rig, job).await;
}

#[tokio::test]
async fn a_frozen_worker_that_comes_back_cannot_finish_the_job_again() {
    let (mut rig, job, held) = frozen_until_another_is_done(true).await;

    rig.wait(&Wait::Line(held, "refused 1".to_owned())).await;

    rig.stop_workers_from(held).await;
    ended_with_the_second_attempt(&rig, job).await;
}
