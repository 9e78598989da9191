//! In which order jobs are handed out, and that nobody at the head hides the others.

use std::time::Duration;

use queue_runtime::job::{Claimed, Due, JobId, JobState, NewJob, Settlement};
use queue_runtime::store::{ClaimRequest, Suspects};

use super::jobs::{SECOND, from_queues, handed_back, job_type, queue, rerun};
use super::subject::Subject;

fn ids(claimed: &[Claimed]) -> Vec<JobId> {
    claimed.iter().map(|run| run.id).collect()
}

pub async fn queues_are_served_in_the_order_of_the_request(s: &Subject) {
    let in_queue = |name, priority| NewJob {
        queue: queue(name),
        priority,
        ..s.job()
    };
    let (a, b, c) = (in_queue("a", 0), in_queue("b", 100), in_queue("c", -100));
    s.insert(&[a.clone(), b.clone(), c.clone()]).await;

    let claimed = s.claim(&from_queues(s.request(), &["c", "a", "b"])).await;

    assert_eq!(ids(&claimed), [c.id, a.id, b.id]);
}

pub async fn a_higher_priority_runs_first(s: &Subject) {
    let of = |priority| NewJob {
        priority,
        ..s.job()
    };
    let jobs = [of(-100), of(0), of(100), of(1), of(-1)];
    s.insert(&jobs).await;

    let claimed = s.claim_all().await;

    let [lowest, middle, highest, above, below] = jobs.map(|job| job.id);
    assert_eq!(ids(&claimed), [highest, above, middle, below, lowest]);
}

pub async fn priority_counts_before_the_due_time(s: &Subject) {
    let early = s.job();
    s.add(&early).await;
    s.advance(SECOND);
    let urgent = NewJob {
        priority: 1,
        ..s.job()
    };
    s.add(&urgent).await;

    assert_eq!(ids(&s.claim_all().await), [urgent.id, early.id]);
}

pub async fn the_job_that_was_due_first_runs_first(s: &Subject) {
    let after = |seconds| NewJob {
        due: Due::After(SECOND * seconds),
        ..s.job()
    };
    let jobs = [after(3), after(1), after(2)];
    s.insert(&jobs).await;
    s.advance(SECOND * 9);

    let [third, first, second] = jobs.map(|job| job.id);
    assert_eq!(ids(&s.claim_all().await), [first, second, third]);
}

pub async fn jobs_due_together_run_in_the_order_of_their_ids(s: &Subject) {
    let mut jobs: Vec<NewJob> = (0..6).map(|_| s.job()).collect();
    let expected: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    jobs.reverse();
    jobs.swap(1, 4);
    s.insert(&jobs).await;

    assert_eq!(ids(&s.claim_all().await), expected);
}

/// A limit must cut after ordering, not before.
pub async fn a_small_limit_takes_the_first_in_order(s: &Subject) {
    let of = |priority| NewJob {
        priority,
        ..s.job()
    };
    let jobs = [of(0), of(5), of(9)];
    s.insert(&jobs).await;

    let mut order = Vec::new();
    for _ in 0..3 {
        order.push(s.take().await.id);
    }

    let [last, second, first] = jobs.map(|job| job.id);
    assert_eq!(order, [first, second, last]);
}

pub async fn a_crowd_of_unknown_types_at_the_head_hides_nobody(s: &Subject) {
    let unknown = |_| NewJob {
        job_type: job_type("unknown"),
        priority: 100,
        ..s.job()
    };
    let crowd: Vec<NewJob> = (0..1_000).map(unknown).collect();
    s.insert(&crowd).await;
    s.advance(SECOND);
    let known = NewJob {
        priority: -100,
        ..s.job()
    };
    s.add(&known).await;

    let claimed = s
        .claim(&ClaimRequest {
            limit: 1,
            ..s.request()
        })
        .await;

    assert_eq!(ids(&claimed), [known.id]);
}

pub async fn a_crowd_of_future_jobs_at_the_head_hides_nobody(s: &Subject) {
    let future = |_| NewJob {
        due: Due::After(SECOND),
        priority: 100,
        ..s.job()
    };
    let crowd: Vec<NewJob> = (0..1_000).map(future).collect();
    s.insert(&crowd).await;
    let due = NewJob {
        priority: -100,
        ..s.job()
    };
    s.add(&due).await;

    let claimed = s
        .claim(&ClaimRequest {
            limit: 1,
            ..s.request()
        })
        .await;

    assert_eq!(ids(&claimed), [due.id]);
}

pub async fn a_crowd_of_waiting_reruns_at_the_head_hides_nobody(s: &Subject) {
    let keyed = |n| NewJob {
        dedupe: rerun(&format!("k{n}")),
        priority: 100,
        ..s.job()
    };
    let running: Vec<NewJob> = (0..50).map(keyed).collect();
    s.insert(&running).await;
    assert_eq!(s.claim_all().await.len(), 50);
    let waiting: Vec<NewJob> = (0..50).map(keyed).collect();
    s.insert(&waiting).await;
    let plain = s.job();
    s.add(&plain).await;

    assert_eq!(ids(&s.claim_all().await), [plain.id]);
}

/// Jobs that were lost so often in a row, waiting and due, the first of the highest priority.
async fn lost(s: &Subject, count: i16, crashes: u32) -> Vec<JobId> {
    let job = |n| NewJob {
        priority: 50 - n,
        ..s.job()
    };
    s.insert(&(0..count).map(job).collect::<Vec<_>>()).await;
    let runs = s.claim_all().await;
    for run in &runs {
        s.apply(Settlement {
            crashes,
            ..handed_back(run)
        })
        .await;
    }
    ids(&runs)
}

fn with_suspects(s: &Subject, limit: usize) -> ClaimRequest {
    let suspects = Suspects { crashes: 2, limit };
    ClaimRequest {
        suspects,
        ..s.request()
    }
}

pub async fn suspects_beyond_their_limit_make_way_for_others(s: &Subject) {
    let suspects = lost(s, 3, 2).await;
    let innocent = s.job();
    s.add(&innocent).await;

    let one = with_suspects(s, 1);
    let claimed = s.claim(&ClaimRequest { limit: 2, ..one }).await;

    assert_eq!(ids(&claimed), [suspects[0], innocent.id]);
    for waiting in &suspects[1..] {
        assert_eq!(s.record(*waiting).await.state, JobState::Queued);
    }
    assert_eq!(ids(&s.claim(&with_suspects(s, 5)).await), suspects[1..]);
}

pub async fn a_claim_without_suspects_neither_takes_nor_waits_for_one(s: &Subject) {
    let waiting = lost(s, 1, 2).await;
    let none = with_suspects(s, 0);

    assert_eq!(s.claim(&none).await, []);
    assert_eq!(s.store().next_due(&none).await.ok().flatten(), None);
    let one = with_suspects(s, 1);
    let due = s.store().next_due(&one).await.ok().flatten();
    assert_eq!(due, Some(Duration::ZERO));
    assert_eq!(ids(&s.claim(&one).await), waiting);
}

pub async fn a_job_one_crash_short_of_a_suspect_is_none(s: &Subject) {
    let lost_once = lost(s, 2, 1).await;

    assert_eq!(ids(&s.claim(&with_suspects(s, 0)).await), lost_once);
}
