//! Dedupe keys: at most one live job of a type and key, and at most one waiting behind it.
//!
//! The first part is one case for each mode and each state of the key's holder; the second says
//! when a key is free again; the windows have a file of their own.

use queue_runtime::job::{CacheKey, Claimed, DedupeUntil, Due, NewJob, OnDuplicate};
use queue_runtime::store::Inserted;

use super::jobs::{LEASE, SECOND, dedupe, held, keep, queue, replace, rerun, retry};
use super::picture::Picture;
use super::subject::Subject;

/// Returns a newcomer that differs from a plain job in everything that a replace takes over, and
/// in what it must not take over.
fn newcomer(s: &Subject, on_duplicate: OnDuplicate) -> NewJob {
    NewJob {
        payload: r#"{"user_id":42,"plan":"new"}"#.to_owned(),
        payload_schema: 2,
        priority: 5,
        max_attempts: 1,
        due: Due::After(LEASE),
        deadline: Some(LEASE),
        dedupe: dedupe("k", on_duplicate),
        cache: Some(CacheKey {
            key: "user:42".to_owned(),
            version: 9,
        }),
        trace_context: Some("00-new".to_owned()),
        queue: queue("other"),
        ..s.job()
    }
}

fn rewritten(expected: &mut Picture, s: &Subject, existing: &NewJob, new: &NewJob) {
    let record = expected.job(existing.id);
    record.payload.clone_from(&new.payload);
    record.payload_schema = new.payload_schema;
    record.priority = new.priority;
    record.cache.clone_from(&new.cache);
    record.trace_context.clone_from(&new.trace_context);
    record.updated_at = s.now();
}

/// Offers a newcomer and says that an existing job answers for it: rewritten, or untouched.
async fn is_answered_by(s: &Subject, new: &NewJob, existing: &NewJob, rewrites: bool) {
    let mut expected = s.picture().await;
    s.advance(SECOND);
    let state = s.record(existing.id).await.state;

    let reply = s.offer(new).await;

    let duplicate = Inserted::Duplicate {
        existing: existing.id,
        state,
        payload_differs: true,
    };
    assert_eq!(reply, duplicate);
    if rewrites {
        rewritten(&mut expected, s, existing, new);
    }
    s.shows(&expected).await;
}

/// Offers a newcomer and says that it waits behind the running job, which is untouched.
async fn waits_behind(s: &Subject, new: &NewJob) {
    let mut expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.offer(new).await, Inserted::New { id: new.id });

    expected.inserted(new, s.now()).dedupe_slot = 1;
    s.shows(&expected).await;
    s.advance(LEASE);
    assert_eq!(s.claim_all().await, [], "it waits while the first one runs");
}

/// Brings a keyed job into each state that a newcomer can meet.
pub(super) async fn waiting(s: &Subject) -> NewJob {
    let job = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    s.add(&job).await;
    job
}

pub(super) async fn running(s: &Subject) -> (NewJob, Claimed) {
    let job = waiting(s).await;
    let run = s.take().await;
    (job, run)
}

pub(super) async fn retrying(s: &Subject) -> NewJob {
    let (job, run) = running(s).await;
    s.apply(retry(&run, LEASE)).await;
    job
}

pub(super) async fn running_with_one_behind(s: &Subject) -> (NewJob, NewJob, Claimed) {
    let (job, run) = running(s).await;
    let behind = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.add(&behind).await;
    (job, behind, run)
}

pub async fn keep_drops_a_newcomer_while_the_job_waits(s: &Subject) {
    let job = waiting(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Keep), &job, false).await;
}

pub async fn keep_drops_a_newcomer_while_the_job_runs(s: &Subject) {
    let (job, _) = running(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Keep), &job, false).await;
}

pub async fn keep_drops_a_newcomer_while_the_job_retries(s: &Subject) {
    let job = retrying(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Keep), &job, false).await;
}

pub async fn keep_answers_with_the_running_job_and_not_the_one_behind(s: &Subject) {
    let (job, _, _) = running_with_one_behind(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Keep), &job, false).await;
}

pub async fn replace_rewrites_a_job_that_waits(s: &Subject) {
    let job = waiting(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Replace), &job, true).await;
    assert_eq!(s.take().await.payload, r#"{"user_id":42,"plan":"new"}"#);
}

pub async fn replace_waits_behind_a_job_that_runs(s: &Subject) {
    running(s).await;
    waits_behind(s, &newcomer(s, OnDuplicate::Replace)).await;
}

pub async fn replace_rewrites_a_job_that_retries_and_keeps_its_counters(s: &Subject) {
    let job = retrying(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Replace), &job, true).await;
    let record = s.record(job.id).await;
    assert_eq!((record.attempts, record.max_attempts), (1, 5));
}

pub async fn replace_rewrites_the_one_behind(s: &Subject) {
    let (_, behind, _) = running_with_one_behind(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Replace), &behind, true).await;
}

pub async fn replace_rewrites_the_one_behind_a_job_that_retries(s: &Subject) {
    let (_, behind, run) = running_with_one_behind(s).await;
    s.apply(retry(&run, LEASE)).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Replace), &behind, true).await;
}

pub async fn rerun_drops_a_newcomer_while_the_job_waits(s: &Subject) {
    let job = waiting(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Rerun), &job, false).await;
}

pub async fn rerun_waits_behind_a_job_that_runs(s: &Subject) {
    running(s).await;
    waits_behind(s, &newcomer(s, OnDuplicate::Rerun)).await;
}

pub async fn rerun_drops_a_newcomer_while_the_job_retries(s: &Subject) {
    let job = retrying(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Rerun), &job, false).await;
}

pub async fn rerun_keeps_only_one_behind(s: &Subject) {
    let (_, behind, _) = running_with_one_behind(s).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Rerun), &behind, false).await;
}

pub async fn rerun_keeps_the_one_behind_a_job_that_retries(s: &Subject) {
    let (_, behind, run) = running_with_one_behind(s).await;
    s.apply(retry(&run, LEASE)).await;
    is_answered_by(s, &newcomer(s, OnDuplicate::Rerun), &behind, false).await;
}

pub async fn replace_rewrites_a_job_that_holds_its_key_until_the_start(s: &Subject) {
    let job = NewJob {
        dedupe: held("k", DedupeUntil::Started, OnDuplicate::Replace),
        ..s.job()
    };
    s.add(&job).await;
    let new = newcomer(s, OnDuplicate::Replace);
    let until = DedupeUntil::Started;
    let new = NewJob {
        dedupe: held("k", until, OnDuplicate::Replace),
        ..new
    };

    is_answered_by(s, &new, &job, true).await;

    s.take().await;
    assert_eq!(s.record(job.id).await.dedupe_key, None);
}

pub async fn a_replaced_job_keeps_its_place_and_its_due_time(s: &Subject) {
    let job = NewJob {
        dedupe: replace("k"),
        due: Due::After(SECOND * 5),
        ..s.job()
    };
    s.add(&job).await;
    let now = NewJob {
        dedupe: replace("k"),
        due: Due::Now,
        ..s.job()
    };

    s.offer(&now).await;

    assert_eq!(s.claim_all().await, []);
    s.advance(SECOND * 5);
    assert_eq!(s.take().await.id, job.id);
}
