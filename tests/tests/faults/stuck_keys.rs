//! Dedupe keys that outlive their job, or are let go by somebody else's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use queue_runtime::job::{Claimed, DedupeUntil, JobId, NewJob, OnDuplicate};
use queue_runtime::store::{ClaimRequest, Inserted};
use queue_runtime::{Data, EnqueueError, JobContext, JobState, Worker, job};
use queue_testkit::conformance::jobs::{
    LEASE, SECOND, dead, dedupe, done, held, keep, rescue, retry,
};

use crate::child::{Child, IsUnderWayJob, is_under_way, worker};
use crate::world::{Subject, World, finals, job};

on! { memory:
    real { o_038_a_handler_enqueues_its_own_key_and_runs_once_more }
    by_hand {
        o_034_a_key_is_free_once_the_job_of_a_lost_worker_has_ended
        o_035_a_claim_meets_a_retry_and_a_newcomer_of_one_key_without_a_fault
        o_036_removing_an_old_job_leaves_its_key_with_the_new_one
    }
}

on! { sqlite:
    real {
        o_034_a_key_of_a_killed_worker_is_held_by_its_job_and_free_after_it
        o_038_a_handler_enqueues_its_own_key_and_runs_once_more
    }
    by_hand {
        o_034_a_key_is_free_once_the_job_of_a_lost_worker_has_ended
        o_035_a_claim_meets_a_retry_and_a_newcomer_of_one_key_without_a_fault
        o_036_removing_an_old_job_leaves_its_key_with_the_new_one
    }
}

on! { postgres:
    real {
        o_034_a_key_of_a_killed_worker_is_held_by_its_job_and_free_after_it
        o_038_a_handler_enqueues_its_own_key_and_runs_once_more
    }
    by_hand {
        o_034_a_key_is_free_once_the_job_of_a_lost_worker_has_ended
        o_035_a_claim_meets_a_retry_and_a_newcomer_of_one_key_without_a_fault
        o_036_removing_an_old_job_leaves_its_key_with_the_new_one
    }
}

/// Twice; the many rounds are by hand.
async fn o_034_a_key_of_a_killed_worker_is_held_by_its_job_and_free_after_it(world: &World) {
    let queue = world.open().await;
    let enqueue = async || is_under_way::enqueue(&queue, 7).await.expect("answered");
    for _ in 0..2 {
        let first = enqueue().await;
        assert!(!first.duplicate, "the key is free");

        let mut child = Child::start("holds", world);
        child.says("running").await;
        child.kill().await;

        let meanwhile = enqueue().await;
        assert_eq!((meanwhile.id, meanwhile.duplicate), (first.id, true));
        let next = worker(&queue).job::<IsUnderWayJob>();
        next.run_until(finals(&[&queue], 1))
            .await
            .expect("ends well");
        let ended = job(&queue, first.id).await;
        assert_eq!((ended.state, ended.attempts), (JobState::Done, 2));
    }
}

/// Fifty times.
async fn o_034_a_key_is_free_once_the_job_of_a_lost_worker_has_ended(s: &Subject) {
    for _ in 0..50 {
        let keyed = || NewJob {
            dedupe: keep("k"),
            ..s.job()
        };
        let run = s.running(&keyed()).await;
        s.advance(LEASE);
        s.apply(rescue(&run)).await;
        let again = s.take().await;
        is_answered_by(s, &keyed(), run.id, JobState::Processing).await;

        s.apply(done(&again)).await;
    }
    let left = s.store().counts().await.expect("it answers");
    assert_eq!((left.done, left.total()), (50, 50));
}

/// Offers a job, and says that an existing one answers for it.
async fn is_answered_by(s: &Subject, new: &NewJob, existing: JobId, state: JobState) {
    let payload_differs = false;
    let duplicate = Inserted::Duplicate {
        existing,
        state,
        payload_differs,
    };
    assert_eq!(s.offer(new).await, duplicate);
}

/// Every way in which a key can be held, with jobs of other keys around them.
async fn o_035_a_claim_meets_a_retry_and_a_newcomer_of_one_key_without_a_fault(s: &Subject) {
    let started = |key| held(key, DedupeUntil::Started, OnDuplicate::Keep);
    let ways = [
        ("keep", OnDuplicate::Keep),
        ("rerun", OnDuplicate::Rerun),
        ("replace", OnDuplicate::Replace),
    ];
    let mut retrying = Vec::new();
    for (key, way) in ways {
        let first = NewJob {
            dedupe: dedupe(key, way),
            ..s.job()
        };
        retrying.push((first.id, s.running(&first).await));
        // Stored behind the running job, or answered by it.
        s.offer(&NewJob {
            dedupe: dedupe(key, way),
            ..s.job()
        })
        .await;
    }
    let first = NewJob {
        dedupe: started("started"),
        ..s.job()
    };
    retrying.push((first.id, s.running(&first).await));
    let beside = NewJob {
        dedupe: started("started"),
        ..s.job()
    };
    s.add(&beside).await;
    for (_, run) in &retrying {
        s.apply(retry(run, SECOND)).await;
    }
    let others: Vec<NewJob> = (0..30)
        .map(|n| NewJob {
            dedupe: keep(&format!("other {n}")),
            ..s.job()
        })
        .collect();
    s.insert(&others).await;
    s.advance(SECOND);

    let ten = ClaimRequest {
        limit: 10,
        ..s.request()
    };
    let mut claimed: Vec<Claimed> = Vec::new();
    loop {
        let batch = s.claim(&ten).await;
        if batch.is_empty() {
            break;
        }
        claimed.extend(batch);
    }

    let mut expected: Vec<JobId> = retrying.iter().map(|(id, _)| *id).collect();
    expected.push(beside.id);
    expected.extend(others.iter().map(|job| job.id));
    expected.sort();
    let mut ids: Vec<JobId> = claimed.iter().map(|run| run.id).collect();
    ids.sort();
    assert_eq!(ids, expected, "those that wait behind their key wait on");
    for run in &claimed {
        s.apply(done(run)).await;
    }
    assert_eq!(s.claim_all().await.len(), 2, "of rerun and of replace");
}

async fn o_036_removing_an_old_job_leaves_its_key_with_the_new_one(s: &Subject) {
    for settlement in [done, dead] {
        let keyed = || NewJob {
            dedupe: keep("k"),
            ..s.job()
        };
        let old = s.settled(&keyed(), settlement).await;
        s.advance(SECOND);
        let new = keyed();
        s.add(&new).await;

        assert_eq!(s.prune(SECOND, 10).await.jobs, 1);

        let gone = s.store().job(old.id).await.expect("it answers");
        assert_eq!(gone, None);
        is_answered_by(s, &keyed(), new.id, JobState::Queued).await;
        let run = s.take().await;
        is_answered_by(s, &keyed(), new.id, JobState::Processing).await;
        s.apply(done(&run)).await;
        s.advance(SECOND);
        s.prune(SECOND, 10).await;
    }
}

/// Keeps an index of one user up to date; the first run asks for another.
#[job(dedupe = "user", on_duplicate = "rerun", retries = 0)]
async fn asks_for_itself(
    user: u64,
    ctx: JobContext,
    runs: Data<AtomicU32>,
) -> Result<(), EnqueueError> {
    if runs.fetch_add(1, Ordering::SeqCst) > 0 {
        return Ok(());
    }
    let first = asks_for_itself::enqueue(&ctx, user).await?;
    assert!(!first.duplicate && first.id != ctx.job_id());
    // The key has not been let go: one waits, and no more than one.
    let second = asks_for_itself::enqueue(&ctx, user).await?;
    assert_eq!((second.id, second.duplicate), (first.id, true));
    Ok(())
}

async fn o_038_a_handler_enqueues_its_own_key_and_runs_once_more(world: &World) {
    let queue = world.open().await;
    let runs = Data::new(AtomicU32::new(0));
    let first = asks_for_itself::enqueue(&queue, 7).await.expect("enqueued");

    let worker = Worker::builder(&queue)
        .job::<AsksForItselfJob>()
        .shared(runs.clone())
        .poll(Duration::from_millis(50));
    worker
        .run_until(finals(&[&queue], 2))
        .await
        .expect("ends well");

    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(job(&queue, first.id).await.state, JobState::Done);
    let counts = queue.counts().await.expect("it answers");
    assert_eq!((counts.done, counts.total()), (2, 2));
    let again = asks_for_itself::enqueue(&queue, 7).await.expect("enqueued");
    assert!(!again.duplicate, "the key is free");
}
