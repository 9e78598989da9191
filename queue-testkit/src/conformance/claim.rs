//! Which jobs a claim takes, in which order, and what it writes.

use std::collections::BTreeSet;
use std::time::Duration;

use queue_runtime::job::{CacheKey, Claimed, Due, JobId, JobState, NewJob};
use queue_runtime::store::ClaimRequest;

use super::jobs::{
    LEASE, MS, REQUEST, SCHEMA, SECOND, dead, done, from_queues, job_type, keep, of_types, once,
    queue, rerun, retry, worker,
};
use super::subject::Subject;

fn ids(claimed: &[Claimed]) -> Vec<JobId> {
    claimed.iter().map(|run| run.id).collect()
}

pub async fn a_claim_starts_an_attempt_under_a_lease(s: &Subject) {
    let job = s.job();
    s.add(&job).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    let run = s.take().await;

    let now = s.now();
    let record = s.record(job.id).await;
    assert_eq!((record.state, record.attempts), (JobState::Processing, 1));
    assert_eq!(record.locked_until, Some(now.saturating_add(LEASE)));
    assert_eq!(record.locked_by, Some(worker("conformance@1")));
    assert_eq!(record.lock_token, Some(run.token));
    assert_eq!((record.started_at, record.updated_at), (Some(now), now));
    let history = s.attempts(job.id).await;
    assert_eq!(
        (history.len(), history[0].number, history[0].started_at),
        (1, 1, now)
    );
    expected.claimed(&run, &worker("conformance@1"));
    s.shows(&expected).await;
}

pub async fn a_claim_hands_out_everything_that_was_stored(s: &Subject) {
    let job = NewJob {
        payload: r#"{"user_id":7}"#.to_owned(),
        payload_schema: 2,
        max_attempts: 4,
        due: Due::After(SECOND),
        deadline: Some(SECOND * 99),
        dedupe: keep("k"),
        idempotency: once("i", REQUEST),
        cache: Some(CacheKey {
            key: "user:7".to_owned(),
            version: 3,
        }),
        trace_context: Some("00-aa-bb-01".to_owned()),
        ..s.job()
    };
    let created_at = s.now();
    s.add(&job).await;
    s.advance(SECOND * 3);

    let run = s.take().await;

    let expected = Claimed {
        id: job.id,
        job_type: job.job_type.clone(),
        queue: job.queue.clone(),
        payload: job.payload.clone(),
        payload_schema: 2,
        attempt: 1,
        max_attempts: 4,
        crashes: 0,
        snoozes: 0,
        generation: 0,
        token: run.token,
        locked_until: s.now().saturating_add(LEASE),
        claimed_at: s.now(),
        run_at: created_at.saturating_add(SECOND),
        created_at,
        deadline: Some(created_at.saturating_add(SECOND * 99)),
        cancel_requested: false,
        idempotency_key: Some("i".to_owned()),
        cache: job.cache.clone(),
        trace_context: job.trace_context.clone(),
    };
    assert_eq!(run, expected);
    assert_eq!(run.waited(), SECOND * 2);
}

pub async fn a_limit_of_zero_claims_nothing(s: &Subject) {
    s.add(&s.job()).await;
    let expected = s.picture().await;

    assert_eq!(
        s.claim(&ClaimRequest {
            limit: 0,
            ..s.request()
        })
        .await,
        []
    );

    s.shows(&expected).await;
}

pub async fn a_claim_takes_no_more_than_its_limit(s: &Subject) {
    let jobs: Vec<NewJob> = (0..5).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let mut expected = s.picture().await;

    let claimed = s
        .claim(&ClaimRequest {
            limit: 3,
            ..s.request()
        })
        .await;

    assert_eq!(ids(&claimed), [jobs[0].id, jobs[1].id, jobs[2].id]);
    for run in &claimed {
        expected.claimed(run, &worker("conformance@1"));
    }
    s.shows(&expected).await;
}

pub async fn the_limit_counts_over_all_queues(s: &Subject) {
    let in_queue = |name| NewJob {
        queue: queue(name),
        ..s.job()
    };
    let jobs = [in_queue("a"), in_queue("a"), in_queue("b"), in_queue("b")];
    s.insert(&jobs).await;

    let request = ClaimRequest {
        limit: 3,
        ..from_queues(s.request(), &["a", "b"])
    };
    let claimed = s.claim(&request).await;

    assert_eq!(ids(&claimed), [jobs[0].id, jobs[1].id, jobs[2].id]);
    assert_eq!(s.record(jobs[3].id).await.state, JobState::Queued);
}

pub async fn a_limit_without_bound_claims_what_there_is(s: &Subject) {
    s.insert(&[s.job(), s.job()]).await;

    let claimed = s
        .claim(&ClaimRequest {
            limit: usize::MAX,
            ..s.request()
        })
        .await;

    assert_eq!(claimed.len(), 2);
}

pub async fn other_queues_stay_untouched(s: &Subject) {
    let other = NewJob {
        queue: queue("other"),
        ..s.job()
    };
    s.add(&other).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.claim_all().await, []);
    assert_eq!(s.claim(&from_queues(s.request(), &[])).await, []);

    s.shows(&expected).await;
}

pub async fn unknown_types_stay_untouched(s: &Subject) {
    let unknown = NewJob {
        job_type: job_type("unknown"),
        ..s.job()
    };
    let longer = NewJob {
        job_type: job_type("send_welcome2"),
        ..s.job()
    };
    let other_case = NewJob {
        job_type: job_type("Send_Welcome"),
        ..s.job()
    };
    s.insert(&[unknown, longer, other_case]).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.claim_all().await, []);
    assert_eq!(s.claim(&of_types(s.request(), &[])).await, []);

    s.shows(&expected).await;
}

pub async fn a_schema_above_the_readers_stays_untouched(s: &Subject) {
    let schema = |payload_schema| NewJob {
        payload_schema,
        ..s.job()
    };
    let (old, current, new) = (schema(1), schema(SCHEMA), schema(SCHEMA + 1));
    s.insert(&[new.clone(), current.clone(), old.clone()]).await;
    let mut expected = s.picture().await;

    let claimed = s.claim_all().await;

    assert_eq!(claimed.len(), 2);
    for run in &claimed {
        expected.claimed(run, &worker("conformance@1"));
    }
    s.shows(&expected).await;
    assert_eq!(s.record(new.id).await.state, JobState::Queued);
}

pub async fn each_type_has_a_schema_bound_of_its_own(s: &Subject) {
    let of = |name, payload_schema| NewJob {
        job_type: job_type(name),
        payload_schema,
        ..s.job()
    };
    let jobs = [of("a", 1), of("a", 2), of("b", 2), of("b", 3)];
    s.insert(&jobs).await;

    let claimed = s.claim(&of_types(s.request(), &[("a", 1), ("b", 2)])).await;

    assert_eq!(ids(&claimed), [jobs[0].id, jobs[2].id]);
}

pub async fn a_worker_of_many_types_is_served(s: &Subject) {
    let names: Vec<String> = (0..200).map(|n| format!("type-{n}")).collect();
    let types: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let job = NewJob {
        job_type: job_type("type-137"),
        payload_schema: 1,
        ..s.job()
    };
    s.add(&job).await;

    assert_eq!(
        ids(&s.claim(&of_types(s.request(), &types)).await),
        [job.id]
    );
}

pub async fn a_running_job_is_not_claimed_again(s: &Subject) {
    s.running(&s.job()).await;
    let expected = s.picture().await;
    s.advance(LEASE - MS);

    assert_eq!(s.claim_all().await, []);

    s.shows(&expected).await;
}

/// Only a rescue takes a job from its worker; it counts the crash, which a claim could not.
pub async fn a_job_whose_lease_ran_out_is_not_claimed_before_its_rescue(s: &Subject) {
    s.running(&s.job()).await;
    let expected = s.picture().await;
    s.advance(LEASE * 100);

    assert_eq!(s.claim_all().await, []);

    s.shows(&expected).await;
}

pub async fn final_jobs_are_not_claimed(s: &Subject) {
    let (well, badly, called_off) = (s.job(), s.job(), s.job());
    s.settled(&well, done).await;
    s.settled(&badly, dead).await;
    s.add(&called_off).await;
    s.cancel(called_off.id).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.claim_all().await, []);

    s.shows(&expected).await;
}

pub async fn the_job_waiting_behind_its_key_is_not_claimed(s: &Subject) {
    let running = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.running(&running).await;
    let waiting = NewJob {
        dedupe: rerun("k"),
        priority: 100,
        ..s.job()
    };
    s.add(&waiting).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.claim_all().await, []);

    s.shows(&expected).await;
}

pub async fn tokens_rise_from_claim_to_claim_over_all_jobs(s: &Subject) {
    let jobs: Vec<NewJob> = (0..10).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let mut newest = None;
    for _ in 0..3 {
        let claimed = s
            .claim(&ClaimRequest {
                limit: 5,
                ..s.request()
            })
            .await;
        let rest = s.claim_all().await;
        let batch = |runs: &[Claimed]| runs.iter().map(|run| run.token).collect::<BTreeSet<_>>();
        for tokens in [batch(&claimed), batch(&rest)] {
            assert_eq!(tokens.len(), 5, "each claimed job has a token of its own");
            assert!(
                tokens.first() > newest.as_ref(),
                "{tokens:?} after {newest:?}"
            );
            assert!(tokens.first().is_some_and(|token| token.get() > 0));
            newest = tokens.last().copied();
        }
        let settlements: Vec<_> = claimed
            .iter()
            .chain(&rest)
            .map(|run| retry(run, Duration::ZERO))
            .collect();
        s.settle(&settlements).await;
    }
}

pub async fn a_token_is_not_reused_after_its_job_is_gone(s: &Subject) {
    let first = s.settled(&s.job(), done).await;
    s.advance(SECOND);
    s.prune(MS, 10).await;

    let second = s.running(&s.job()).await;

    assert!(second.token > first.token);
}

pub async fn every_claim_counts_an_attempt(s: &Subject) {
    let job = s.job();
    s.add(&job).await;
    for number in 1..=4 {
        s.advance(SECOND);
        let request = ClaimRequest {
            worker: worker(&format!("w@{number}")),
            ..s.request()
        };
        let run = s.claim(&request).await.remove(0);
        assert_eq!((run.attempt, run.crashes, run.snoozes), (number, 0, 0));
        let record = s.record(job.id).await;
        assert_eq!(
            (record.attempts, record.started_at),
            (number, Some(s.now()))
        );
        assert_eq!(record.locked_by, Some(request.worker.clone()));
        s.apply(retry(&run, Duration::ZERO)).await;
    }
    let history = s.attempts(job.id).await;
    let numbers: Vec<u32> = history.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let workers: Vec<&str> = history
        .iter()
        .map(|attempt| attempt.worker.as_str())
        .collect();
    assert_eq!(workers, ["w@1", "w@2", "w@3", "w@4"]);
}

pub async fn a_lease_lasts_as_long_as_its_request_says(s: &Subject) {
    let (short, long) = (s.job(), s.job());
    s.insert(&[short.clone(), long.clone()]).await;

    let one = |lease| ClaimRequest {
        limit: 1,
        lease,
        ..s.request()
    };
    let first = s.claim(&one(SECOND)).await.remove(0);
    let second = s.claim(&one(SECOND * 600)).await.remove(0);

    assert_eq!(first.locked_until, s.now().saturating_add(SECOND));
    assert_eq!(second.locked_until, s.now().saturating_add(SECOND * 600));
    assert_eq!(
        s.record(short.id).await.locked_until,
        Some(first.locked_until)
    );
    assert_eq!(
        s.record(long.id).await.locked_until,
        Some(second.locked_until)
    );
}
