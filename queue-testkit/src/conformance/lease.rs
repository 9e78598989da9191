//! Leases: how they are renewed, how they run out, and who may take a job from its worker.

use std::time::Duration;

use queue_runtime::job::{
    Change, Claimed, DeadReason, JobId, JobRecord, JobState, Lease, OutcomeKind,
};
use queue_runtime::job::{LeaseToken, NewJob, Settled, Settlement};
use queue_runtime::store::{Cancelling, ClaimRequest, Extended, Replaying};

use super::jobs::{
    LEASE, MS, SECOND, called_off, dead, done, handed_back, rerun, rescue, rescue_of, retry,
    snooze, worker,
};
use super::picture::Picture;
use super::subject::Subject;

fn ids(expired: &[JobRecord]) -> Vec<JobId> {
    expired.iter().map(|record| record.id).collect()
}

pub async fn a_renewed_lease_ends_one_lease_from_now(s: &Subject) {
    let run = s.running(&s.job()).await;
    let mut expected = s.picture().await;
    s.advance(SECOND * 20);

    assert_eq!(s.extend(&[run.lease()], LEASE).await, [Extended::Kept]);

    let record = expected.job(run.id);
    record.locked_until = Some(s.now().saturating_add(LEASE));
    record.updated_at = s.now();
    s.shows(&expected).await;
}

/// The newest answer counts, so that a worker's idea of its lease and the store's never differ.
pub async fn a_shorter_renewal_shortens_the_lease(s: &Subject) {
    let run = s.running(&s.job()).await;

    assert_eq!(s.extend(&[run.lease()], SECOND).await, [Extended::Kept]);

    assert_eq!(
        s.record(run.id).await.locked_until,
        Some(s.now().saturating_add(SECOND))
    );
    s.advance(SECOND);
    assert_eq!(ids(&s.expired(10).await), [run.id]);
}

pub async fn a_renewal_with_a_token_that_never_was_is_lost(s: &Subject) {
    let run = s.running(&s.job()).await;
    let expected = s.picture().await;
    s.advance(SECOND);
    let with = |token| Lease {
        id: run.id,
        token: LeaseToken::new(token),
    };

    let replies = s
        .extend(
            &[with(run.token.get() + 1), with(run.token.get() - 1)],
            LEASE,
        )
        .await;

    assert_eq!(replies, [Extended::Lost, Extended::Lost]);
    s.shows(&expected).await;
}

pub async fn a_renewal_of_a_job_that_is_not_running_is_lost(s: &Subject) {
    let retried = s.settled(&s.job(), |run| retry(run, LEASE)).await;
    let well = s.settled(&s.job(), done).await;
    let badly = s.settled(&s.job(), dead).await;
    let unknown = Lease {
        id: s.job().id,
        token: LeaseToken::new(1),
    };
    let expected = s.picture().await;
    s.advance(SECOND);

    let leases = [retried.lease(), well.lease(), badly.lease(), unknown];
    assert_eq!(s.extend(&leases, LEASE).await, [Extended::Lost; 4]);

    s.shows(&expected).await;
}

pub async fn a_renewal_by_a_worker_that_was_replaced_is_lost(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);
    s.apply(rescue(&run)).await;
    assert_eq!(s.extend(&[run.lease()], LEASE).await, [Extended::Lost]);
    let next = s.take().await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.extend(&[run.lease()], LEASE).await, [Extended::Lost]);

    s.shows(&expected).await;
    assert_eq!(s.extend(&[next.lease()], LEASE).await, [Extended::Kept]);
}

pub async fn renewals_are_answered_in_their_order(s: &Subject) {
    s.insert(&[s.job(), s.job(), s.job()]).await;
    let runs = s.claim_all().await;
    let [a, b, c] = [&runs[0], &runs[1], &runs[2]];
    s.apply(done(b)).await;
    s.cancel(c.id).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    let replies = s.extend(&[c.lease(), b.lease(), a.lease()], LEASE).await;

    assert_eq!(replies, [Extended::Cancel, Extended::Lost, Extended::Kept]);
    for run in [a, c] {
        let record = expected.job(run.id);
        record.locked_until = Some(s.now().saturating_add(LEASE));
        record.updated_at = s.now();
    }
    s.shows(&expected).await;
}

pub async fn renewing_no_lease_answers_nothing(s: &Subject) {
    s.running(&s.job()).await;
    let expected = s.picture().await;

    assert_eq!(s.extend(&[], LEASE).await, []);

    s.shows(&expected).await;
}

pub async fn a_lease_that_ran_out_can_be_renewed_until_its_rescue(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE * 3);
    assert_eq!(ids(&s.expired(10).await), [run.id]);

    assert_eq!(s.extend(&[run.lease()], LEASE).await, [Extended::Kept]);

    assert_eq!(s.expired(10).await, []);
    s.apply(done(&run)).await;
}

pub async fn a_renewal_hears_of_a_cancel_and_still_renews(s: &Subject) {
    let run = s.running(&s.job()).await;
    assert_eq!(s.cancel(run.id).await, Cancelling::Requested);
    let mut expected = s.picture().await;
    s.advance(SECOND);

    for _ in 0..2 {
        assert_eq!(s.extend(&[run.lease()], LEASE).await, [Extended::Cancel]);
    }

    let record = expected.job(run.id);
    record.locked_until = Some(s.now().saturating_add(LEASE));
    record.updated_at = s.now();
    s.shows(&expected).await;
}

pub async fn a_lease_runs_out_at_its_end_and_not_before(s: &Subject) {
    let run = s.running(&s.job()).await;
    let expected = s.picture().await;

    s.advance(LEASE - MS);
    assert_eq!(s.expired(10).await, []);

    s.advance(MS);
    assert_eq!(s.expired(10).await, [s.record(run.id).await]);
    s.shows(&expected).await;
}

pub async fn the_lease_that_ran_out_first_is_listed_first(s: &Subject) {
    let (a, b, c) = (s.job(), s.job(), s.job());
    let mut seconds = [3, 1, 2].into_iter();
    for job in [&a, &b, &c] {
        s.add(job).await;
        let lease = SECOND * seconds.next().expect("three spans for three jobs");
        s.claim(&ClaimRequest {
            lease,
            ..s.request()
        })
        .await;
    }
    s.advance(SECOND * 9);

    assert_eq!(ids(&s.expired(10).await), [b.id, c.id, a.id]);
    assert_eq!(ids(&s.expired(2).await), [b.id, c.id]);
    assert_eq!(s.expired(0).await, []);
    assert_eq!(s.expired(usize::MAX).await.len(), 3);
}

pub async fn only_running_jobs_can_expire(s: &Subject) {
    s.settled(&s.job(), done).await;
    s.settled(&s.job(), dead).await;
    s.settled(&s.job(), |run| retry(run, Duration::MAX)).await;
    s.add(&s.job()).await;

    s.advance(LEASE * 10);

    assert_eq!(s.expired(10).await, []);
}

/// Nobody reads who holds a job, or until when, of a job that nobody holds.
pub async fn only_a_running_job_shows_a_lease(s: &Subject) {
    let job = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    let lease_of = async |id: JobId| {
        let record = s.record(id).await;
        (record.locked_until, record.locked_by)
    };
    let free = async |what: &str| assert_eq!(lease_of(job.id).await, (None, None), "after {what}");
    s.add(&job).await;
    free("the insert").await;
    type Ending = (fn(&Claimed) -> Settlement, &'static str);
    let endings: [Ending; 7] = [
        (|run| retry(run, Duration::ZERO), "a retry"),
        (|run| snooze(run, Duration::ZERO), "a snooze"),
        (handed_back, "a hand-back"),
        (rescue, "a rescue"),
        (dead, "a failure for good"),
        (called_off, "a stop"),
        (done, "a success"),
    ];
    for (settlement, what) in endings {
        let run = s.take().await;
        let held = (Some(run.locked_until), Some(worker("conformance@1")));
        assert_eq!(lease_of(job.id).await, held, "before {what}");
        s.advance(LEASE);
        s.apply(settlement(&run)).await;
        free(what).await;
        if s.replay(job.id).await == Replaying::Replayed {
            free("the replay").await;
        }
    }

    let other = s
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
    assert_eq!(lease_of(behind.id).await, (None, None), "behind its key");
    s.cancel(other.id).await;
    s.settle(&[retry(&other, SECOND)]).await;
    assert_eq!(lease_of(other.id).await, (None, None), "a request to stop");
    assert_eq!(lease_of(behind.id).await, (None, None), "a promotion");
    s.cancel(behind.id).await;
    assert_eq!(lease_of(behind.id).await, (None, None), "a cancel");
}

pub async fn a_rescued_job_waits_again_and_counts_the_crash(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);
    let mut expected = s.picture().await;
    let settlement = rescue_of(&s.expired(10).await[0]);

    assert_eq!(
        s.settle(std::slice::from_ref(&settlement)).await,
        [Settled::Applied(JobState::Queued)]
    );

    let record = s.record(run.id).await;
    assert_eq!((record.attempts, record.crashes), (1, 1));
    assert_eq!(record.last_outcome, Some(OutcomeKind::Lost));
    let history = s.attempts(run.id).await;
    assert_eq!(history[0].outcome, Some(OutcomeKind::Lost));
    assert_eq!(history[0].finished_at, Some(s.now()));
    expected.settled(&settlement, s.now());
    s.shows(&expected).await;
    let again = s.take().await;
    assert_eq!((again.attempt, again.crashes), (2, 1));
    assert!(again.token > run.token);
}

pub async fn a_rescue_can_end_a_job_that_keeps_crashing(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);
    let mut expected = s.picture().await;
    let reason = DeadReason::Crashed;
    let settlement = Settlement {
        change: Change::DeadLetter { reason },
        outcome: OutcomeKind::Permanent,
        ..rescue(&run)
    };

    assert_eq!(
        s.settle(std::slice::from_ref(&settlement)).await,
        [Settled::Applied(JobState::DeadLetter)]
    );

    expected.settled(&settlement, s.now());
    s.shows(&expected).await;
}

pub async fn a_rescue_before_the_lease_ran_out_is_refused(s: &Subject) {
    let run = s.running(&s.job()).await;
    let expected = s.picture().await;
    s.advance(LEASE - MS);

    assert_eq!(s.settle(&[rescue(&run)]).await, [Settled::Stale]);

    s.shows(&expected).await;
    s.advance(MS);
    assert_eq!(
        s.settle(&[rescue(&run)]).await,
        [Settled::Applied(JobState::Queued)]
    );
}

pub async fn a_rescue_of_a_lease_renewed_a_moment_ago_is_refused(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);
    let settlement = rescue_of(&s.expired(10).await[0]);
    assert_eq!(s.extend(&[run.lease()], LEASE).await, [Extended::Kept]);
    let expected = s.picture().await;

    assert_eq!(s.settle(&[settlement]).await, [Settled::Stale]);

    s.shows(&expected).await;
    s.apply(done(&run)).await;
}

pub async fn a_refused_rescue_does_not_hinder_the_others(s: &Subject) {
    s.insert(&[s.job(), s.job(), s.job()]).await;
    let runs = s.claim_all().await;
    s.advance(LEASE);
    s.extend(&[runs[1].lease()], LEASE).await;
    let mut expected = s.picture().await;

    let rescues: Vec<Settlement> = runs.iter().map(rescue).collect();
    let replies = s.settle(&rescues).await;

    let rescued = Settled::Applied(JobState::Queued);
    assert_eq!(replies, [rescued, Settled::Stale, rescued]);
    expected.settled(&rescues[0], s.now());
    expected.settled(&rescues[2], s.now());
    s.shows(&expected).await;
}

pub async fn a_second_rescue_of_one_lease_changes_nothing(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);
    s.apply(rescue(&run)).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.settle(&[rescue(&run)]).await, [Settled::Stale]);

    s.shows(&expected).await;
}

pub async fn a_rescue_with_an_old_token_does_not_take_the_next_run(s: &Subject) {
    let first = s.running(&s.job()).await;
    s.advance(LEASE);
    s.apply(rescue(&first)).await;
    let second = s.take().await;
    s.advance(LEASE);
    let expected = s.picture().await;

    assert_eq!(s.settle(&[rescue(&first)]).await, [Settled::Stale]);

    s.shows(&expected).await;
    s.apply(done(&second)).await;
}

pub async fn two_workers_never_hold_one_job(s: &Subject) {
    let job = s.job();
    s.add(&job).await;
    let mut expected = Picture::default();
    expected.inserted(&job, s.now());
    for number in 1..=3 {
        let me = worker(&format!("w@{number}"));
        let request = ClaimRequest {
            worker: me.clone(),
            ..s.request()
        };
        let run = s.claim(&request).await.remove(0);
        expected.claimed(&run, &me);
        let other = ClaimRequest {
            worker: worker("other@1"),
            ..s.request()
        };
        assert_eq!(s.claim(&other).await, []);
        s.advance(LEASE);
        assert_eq!(s.claim(&other).await, []);
        s.apply(rescue(&run)).await;
        expected.settled(&rescue(&run), s.now());
        s.shows(&expected).await;
    }
}

pub async fn leases_of_many_jobs_are_renewed_in_one_call(s: &Subject) {
    let jobs: Vec<NewJob> = (0..200).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let runs = s
        .claim(&ClaimRequest {
            limit: 200,
            ..s.request()
        })
        .await;
    s.advance(SECOND);
    let leases: Vec<Lease> = runs.iter().map(|run| run.lease()).collect();

    let replies = s.extend(&leases, LEASE).await;

    assert_eq!(replies, vec![Extended::Kept; 200]);
    s.advance(LEASE - MS);
    assert_eq!(s.expired(10).await, []);
}
