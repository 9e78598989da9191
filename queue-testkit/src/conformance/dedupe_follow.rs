//! The job that waits behind a dedupe key: when it follows, and what keeps it waiting.

use std::time::Duration;

use queue_runtime::job::{Claimed, Due, JobState, NewJob};
use queue_runtime::store::Inserted;

use super::dedupe::{running, running_with_one_behind};
use super::jobs::{LEASE, SECOND, called_off, dead, done, rerun, rescue, retry};
use super::subject::Subject;

/// Settles the running job, and says that the one behind becomes the live one in that step.
async fn is_followed(
    s: &Subject,
    settlement: impl FnOnce(&Claimed) -> queue_runtime::job::Settlement,
) {
    let (_, behind, run) = running_with_one_behind(s).await;
    s.advance(SECOND);
    assert_eq!(s.claim_all().await, []);
    let mut expected = s.picture().await;
    let settlement = settlement(&run);

    s.apply(settlement.clone()).await;

    expected.settled(&settlement, s.now());
    let record = expected.job(behind.id);
    record.dedupe_slot = 0;
    record.updated_at = s.now();
    s.shows(&expected).await;
    assert_eq!(s.take().await.id, behind.id);
    let third = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    assert_eq!(s.offer(&third).await, Inserted::New { id: third.id });
}

pub async fn a_success_lets_the_one_behind_run(s: &Subject) {
    is_followed(s, done).await;
}

pub async fn a_dead_letter_lets_the_one_behind_run(s: &Subject) {
    is_followed(s, dead).await;
}

pub async fn a_cancelled_run_lets_the_one_behind_run(s: &Subject) {
    is_followed(s, called_off).await;
}

pub async fn a_cancel_request_and_a_retry_let_the_one_behind_run(s: &Subject) {
    let (job, behind, run) = running_with_one_behind(s).await;
    s.cancel(job.id).await;

    s.settle(&[retry(&run, SECOND)]).await;

    assert_eq!(s.record(job.id).await.state, JobState::Cancelled);
    assert_eq!(s.take().await.id, behind.id);
}

pub async fn a_retry_keeps_the_one_behind_waiting(s: &Subject) {
    let (job, behind, run) = running_with_one_behind(s).await;

    s.apply(retry(&run, Duration::ZERO)).await;

    let again = s.claim_all().await;
    assert_eq!(again.iter().map(|run| run.id).collect::<Vec<_>>(), [job.id]);
    assert_eq!(s.record(behind.id).await.dedupe_slot, 1);
}

pub async fn a_rescue_keeps_the_one_behind_waiting(s: &Subject) {
    let (job, behind, run) = running_with_one_behind(s).await;
    s.advance(LEASE);

    s.apply(rescue(&run)).await;

    let again = s.claim_all().await;
    assert_eq!(again.iter().map(|run| run.id).collect::<Vec<_>>(), [job.id]);
    assert_eq!(s.record(behind.id).await.dedupe_slot, 1);
}

pub async fn the_one_behind_keeps_its_own_due_time(s: &Subject) {
    let (_, run) = running(s).await;
    let behind = NewJob {
        dedupe: rerun("k"),
        due: Due::After(LEASE),
        ..s.job()
    };
    s.add(&behind).await;

    s.apply(done(&run)).await;

    assert_eq!(s.claim_all().await, []);
    s.advance(LEASE);
    assert_eq!(s.take().await.id, behind.id);
}
