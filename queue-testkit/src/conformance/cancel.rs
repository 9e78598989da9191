//! Calling a job off: at once while it waits, through its worker while it runs.

use std::time::Duration;

use queue_runtime::job::{Claimed, Due, JobState, NewJob, OutcomeKind, Settled, Settlement};
use queue_runtime::store::{Cancelling, Extended, Inserted};

use super::jobs::{
    LEASE, SECOND, called_off, dead, done, handed_back, keep, rerun, rescue, retry, snooze,
};
use super::subject::Subject;

/// Cancels a job that waits, and says that it is cancelled and nothing else changed.
async fn is_cancelled_at_once(s: &Subject, job: &NewJob) {
    let mut expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.cancel(job.id).await, Cancelling::Cancelled);

    let record = expected.job(job.id);
    record.state = JobState::Cancelled;
    record.last_outcome = Some(OutcomeKind::Cancelled);
    record.finished_at = Some(s.now());
    record.updated_at = s.now();
    s.shows(&expected).await;
    s.advance(LEASE * 10);
    assert_eq!(s.claim_all().await, []);
}

pub async fn a_waiting_job_is_cancelled_at_once(s: &Subject) {
    let job = s.job();
    s.add(&job).await;
    is_cancelled_at_once(s, &job).await;
    assert_eq!(s.attempts(job.id).await, []);
}

pub async fn a_scheduled_job_is_cancelled_at_once(s: &Subject) {
    let job = NewJob {
        due: Due::After(LEASE),
        ..s.job()
    };
    s.add(&job).await;
    is_cancelled_at_once(s, &job).await;
}

pub async fn a_retrying_job_is_cancelled_at_once(s: &Subject) {
    let job = s.job();
    s.settled(&job, |run| retry(run, SECOND * 8)).await;
    is_cancelled_at_once(s, &job).await;
    assert_eq!(s.attempts(job.id).await.len(), 1);
    assert_eq!(
        s.record(job.id).await.last_error.as_deref(),
        Some("mail server busy")
    );
}

pub async fn a_running_job_is_only_asked_to_stop(s: &Subject) {
    let run = s.running(&s.job()).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.cancel(run.id).await, Cancelling::Requested);

    let record = expected.job(run.id);
    record.cancel_requested_at = Some(s.now());
    record.updated_at = s.now();
    s.shows(&expected).await;
}

pub async fn a_second_request_keeps_the_time_of_the_first(s: &Subject) {
    let run = s.running(&s.job()).await;
    let first = s.now();
    s.cancel(run.id).await;
    s.advance(SECOND);

    assert_eq!(s.cancel(run.id).await, Cancelling::Requested);

    let record = s.record(run.id).await;
    assert_eq!(
        (record.state, record.cancel_requested_at),
        (JobState::Processing, Some(first))
    );
}

pub async fn a_final_job_cannot_be_cancelled(s: &Subject) {
    let well = s.settled(&s.job(), done).await;
    let badly = s.settled(&s.job(), dead).await;
    let off = s.settled(&s.job(), called_off).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(
        s.cancel(well.id).await,
        Cancelling::AlreadyFinal(JobState::Done)
    );
    assert_eq!(
        s.cancel(badly.id).await,
        Cancelling::AlreadyFinal(JobState::DeadLetter)
    );
    assert_eq!(
        s.cancel(off.id).await,
        Cancelling::AlreadyFinal(JobState::Cancelled)
    );

    s.shows(&expected).await;
}

pub async fn cancelling_nothing_leaves_no_mark(s: &Subject) {
    let job = s.job();

    assert_eq!(s.cancel(job.id).await, Cancelling::NotFound);

    s.add(&job).await;
    assert_eq!(s.take().await.id, job.id);
    assert_eq!(s.record(job.id).await.cancel_requested_at, None);
}

/// Runs a job, asks it to stop, settles it, and says where it ended.
async fn a_request_then(
    s: &Subject,
    settlement: impl FnOnce(&Claimed) -> Settlement,
    state: JobState,
) {
    let run = s.running(&s.job()).await;
    s.cancel(run.id).await;
    s.advance(LEASE);
    let mut expected = s.picture().await;
    let settlement = settlement(&run);

    assert_eq!(
        s.settle(std::slice::from_ref(&settlement)).await,
        [Settled::Applied(state)]
    );

    let run_at = expected.job(run.id).run_at;
    let record = expected.settled(&settlement, s.now());
    record.state = state;
    record.finished_at = Some(s.now());
    record.run_at = run_at;
    s.shows(&expected).await;
    s.advance(LEASE);
    assert_eq!(s.claim_all().await, []);
}

pub async fn a_success_after_the_request_is_done(s: &Subject) {
    a_request_then(s, done, JobState::Done).await;
}

pub async fn a_failure_for_good_after_the_request_is_a_dead_letter(s: &Subject) {
    a_request_then(s, dead, JobState::DeadLetter).await;
}

pub async fn a_stop_after_the_request_is_cancelled(s: &Subject) {
    a_request_then(s, called_off, JobState::Cancelled).await;
}

pub async fn a_retry_after_the_request_is_cancelled(s: &Subject) {
    a_request_then(s, |run| retry(run, SECOND), JobState::Cancelled).await;
}

pub async fn a_snooze_after_the_request_is_cancelled(s: &Subject) {
    a_request_then(s, |run| snooze(run, Duration::ZERO), JobState::Cancelled).await;
}

pub async fn a_hand_back_after_the_request_is_cancelled(s: &Subject) {
    a_request_then(s, handed_back, JobState::Cancelled).await;
}

pub async fn a_rescue_after_the_request_is_cancelled(s: &Subject) {
    a_request_then(s, rescue, JobState::Cancelled).await;
}

pub async fn a_request_survives_a_renewal(s: &Subject) {
    let run = s.running(&s.job()).await;
    let asked_at = s.now();
    s.cancel(run.id).await;
    s.advance(SECOND);

    assert_eq!(s.extend(&[run.lease()], LEASE).await, [Extended::Cancel]);

    assert_eq!(s.record(run.id).await.cancel_requested_at, Some(asked_at));
}

pub async fn a_cancelled_job_frees_its_dedupe_key(s: &Subject) {
    let job = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    s.add(&job).await;
    s.cancel(job.id).await;

    let next = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    assert_eq!(s.offer(&next).await, Inserted::New { id: next.id });

    assert_eq!(s.take().await.id, next.id);
    assert_eq!(s.record(job.id).await.dedupe_key.as_deref(), Some("k"));
}

pub async fn cancelling_a_retrying_job_lets_the_one_behind_it_run(s: &Subject) {
    let first = s
        .running(&NewJob {
            dedupe: rerun("k"),
            ..s.job()
        })
        .await;
    let behind = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.add(&behind).await;
    s.apply(retry(&first, LEASE)).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.cancel(first.id).await, Cancelling::Cancelled);

    let record = expected.job(first.id);
    record.state = JobState::Cancelled;
    record.last_outcome = Some(OutcomeKind::Cancelled);
    record.finished_at = Some(s.now());
    record.updated_at = s.now();
    let record = expected.job(behind.id);
    record.dedupe_slot = 0;
    record.updated_at = s.now();
    s.shows(&expected).await;
    assert_eq!(s.take().await.id, behind.id);
}

pub async fn cancelling_the_one_behind_leaves_the_running_job_alone(s: &Subject) {
    let first = s
        .running(&NewJob {
            dedupe: rerun("k"),
            ..s.job()
        })
        .await;
    let behind = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.add(&behind).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.cancel(behind.id).await, Cancelling::Cancelled);

    let record = expected.job(behind.id);
    record.state = JobState::Cancelled;
    record.last_outcome = Some(OutcomeKind::Cancelled);
    record.finished_at = Some(s.now());
    record.updated_at = s.now();
    s.shows(&expected).await;
    let next = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    assert_eq!(
        s.offer(&next).await,
        Inserted::New { id: next.id },
        "slot 1 is free again"
    );
    s.apply(done(&first)).await;
    assert_eq!(s.take().await.id, next.id);
}
