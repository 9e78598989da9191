//! What a settlement changes, and under which token it may.

use std::time::Duration;

use queue_runtime::job::{Change, Claimed, DeadReason, JobState, LeaseToken, OutcomeKind};
use queue_runtime::job::{NewJob, Settled, Settlement};
use queue_runtime::store::ClaimRequest;

use super::jobs::{
    LEASE, MS, SECOND, called_off, dead, dead_because, done, handed_back, retry, snooze,
};
use super::subject::Subject;

/// Runs a plain job, settles it, and says that exactly the settlement became visible.
async fn changes_exactly_what_it_says(
    s: &Subject,
    settlement: impl FnOnce(&Claimed) -> Settlement,
) -> Claimed {
    let run = s.running(&s.job()).await;
    let mut expected = s.picture().await;
    s.advance(SECOND * 4);
    let settlement = settlement(&run);

    s.apply(settlement.clone()).await;

    expected.settled(&settlement, s.now());
    s.shows(&expected).await;
    run
}

pub async fn a_success_is_done(s: &Subject) {
    let run = changes_exactly_what_it_says(s, done).await;

    let record = s.record(run.id).await;
    assert_eq!(
        (record.state, record.finished_at),
        (JobState::Done, Some(s.now()))
    );
    assert_eq!(record.last_outcome, Some(OutcomeKind::Success));
    let [attempt] = &s.attempts(run.id).await[..] else {
        panic!("one attempt")
    };
    assert_eq!(
        (attempt.finished_at, attempt.outcome),
        (Some(s.now()), Some(OutcomeKind::Success))
    );
    assert_eq!(s.claim_all().await, []);
}

pub async fn a_retry_waits_with_its_error(s: &Subject) {
    let run = changes_exactly_what_it_says(s, |run| retry(run, SECOND * 8)).await;

    let record = s.record(run.id).await;
    assert_eq!((record.state, record.attempts), (JobState::Queued, 1));
    assert_eq!(record.run_at, s.now().saturating_add(SECOND * 8));
    assert_eq!(record.last_error.as_deref(), Some("mail server busy"));
    assert_eq!(record.finished_at, None);
    let attempts = s.attempts(run.id).await;
    assert_eq!(attempts[0].error.as_deref(), Some("mail server busy"));
}

pub async fn a_dead_letter_keeps_its_reason(s: &Subject) {
    for reason in DeadReason::ALL {
        let run = changes_exactly_what_it_says(s, |run| dead_because(run, reason)).await;
        let record = s.record(run.id).await;
        assert_eq!(
            (record.state, record.dead_reason),
            (JobState::DeadLetter, Some(reason))
        );
        assert_eq!(record.last_error.as_deref(), Some("no such user"));
    }
    assert_eq!(s.claim_all().await, []);
}

pub async fn a_run_that_was_called_off_is_cancelled(s: &Subject) {
    let run = changes_exactly_what_it_says(s, called_off).await;

    assert_eq!(s.record(run.id).await.state, JobState::Cancelled);
    assert_eq!(s.claim_all().await, []);
}

pub async fn a_snooze_gives_its_attempt_back(s: &Subject) {
    let run = changes_exactly_what_it_says(s, |run| snooze(run, SECOND)).await;

    let record = s.record(run.id).await;
    assert_eq!((record.attempts, record.snoozes), (0, 1));
    s.advance(SECOND);
    let again = s.take().await;
    assert_eq!((again.attempt, again.snoozes), (1, 1));
}

pub async fn a_run_that_is_handed_back_costs_nothing(s: &Subject) {
    let run = changes_exactly_what_it_says(s, handed_back).await;

    let again = s.take().await;
    assert_eq!((again.id, again.attempt, again.crashes), (run.id, 1, 0));
    assert!(again.token > run.token);
}

pub async fn every_outcome_is_remembered_by_its_word(s: &Subject) {
    for outcome in OutcomeKind::ALL {
        let with = |run: &Claimed| Settlement {
            outcome,
            ..done(run)
        };
        let run = changes_exactly_what_it_says(s, with).await;
        assert_eq!(s.record(run.id).await.last_outcome, Some(outcome));
        assert_eq!(s.attempts(run.id).await[0].outcome, Some(outcome));
    }
}

/// The rules count; the store writes what they counted.
pub async fn the_counters_are_those_of_the_settlement(s: &Subject) {
    let with = |run: &Claimed| Settlement {
        attempts: 4,
        crashes: 2,
        snoozes: 999,
        ..retry(run, Duration::ZERO)
    };
    changes_exactly_what_it_says(s, with).await;

    let run = s.take().await;
    assert_eq!((run.attempt, run.crashes, run.snoozes), (5, 2, 999));
}

/// A store may have a short way for a plain success; what says more than that is not lost on it.
pub async fn the_counters_of_a_success_are_those_of_its_settlement(s: &Subject) {
    let jobs: Vec<NewJob> = (0..4).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let runs = s.claim_all().await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    let batch = [
        done(&runs[0]),
        Settlement {
            attempts: 4,
            ..done(&runs[1])
        },
        Settlement {
            snoozes: 999,
            ..done(&runs[2])
        },
        Settlement {
            crashes: 2,
            ..done(&runs[3])
        },
    ];
    let replies = s.settle(&batch).await;

    assert_eq!(replies, [Settled::Applied(JobState::Done); 4]);
    for applied in &batch {
        expected.settled(applied, s.now());
    }
    s.shows(&expected).await;
}

pub async fn a_settlement_without_error_keeps_the_last_one(s: &Subject) {
    let first = s.running(&s.job()).await;
    s.apply(retry(&first, Duration::ZERO)).await;
    let second = s.take().await;

    s.apply(done(&second)).await;

    let record = s.record(first.id).await;
    assert_eq!(record.last_error.as_deref(), Some("mail server busy"));
    let errors: Vec<_> = s
        .attempts(first.id)
        .await
        .into_iter()
        .map(|run| run.error)
        .collect();
    assert_eq!(errors, [Some("mail server busy".to_owned()), None]);
}

pub async fn a_newer_error_replaces_the_last_one(s: &Subject) {
    let first = s.running(&s.job()).await;
    s.apply(retry(&first, Duration::ZERO)).await;
    let second = s.take().await;

    s.apply(dead(&second)).await;

    assert_eq!(
        s.record(first.id).await.last_error.as_deref(),
        Some("no such user")
    );
    let errors: Vec<_> = s
        .attempts(first.id)
        .await
        .into_iter()
        .map(|run| run.error)
        .collect();
    assert_eq!(
        errors,
        [
            Some("mail server busy".to_owned()),
            Some("no such user".to_owned())
        ]
    );
}

pub async fn an_error_text_survives_byte_for_byte(s: &Subject) {
    let long = "é😀\n\t'\";-- ".repeat(455);
    for error in [String::new(), "line one\r\nline two".to_owned(), long] {
        let with = |run: &Claimed| Settlement {
            error: Some(error.clone()),
            ..dead(run)
        };
        let run = changes_exactly_what_it_says(s, with).await;
        assert_eq!(s.record(run.id).await.last_error, Some(error.clone()));
    }
}

pub async fn settlements_are_answered_in_their_order(s: &Subject) {
    let jobs: Vec<NewJob> = (0..5).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let runs = s.claim_all().await;
    let mut expected = s.picture().await;
    s.advance(SECOND);
    let stale = Settlement {
        token: LeaseToken::new(i64::MAX),
        ..done(&runs[2])
    };

    let batch = [
        dead(&runs[4]),
        done(&runs[0]),
        stale,
        retry(&runs[3], MS),
        called_off(&runs[1]),
    ];
    let replies = s.settle(&batch).await;

    assert_eq!(
        replies,
        [
            Settled::Applied(JobState::DeadLetter),
            Settled::Applied(JobState::Done),
            Settled::Stale,
            Settled::Applied(JobState::Queued),
            Settled::Applied(JobState::Cancelled),
        ]
    );
    for applied in [&batch[0], &batch[1], &batch[3], &batch[4]] {
        expected.settled(applied, s.now());
    }
    s.shows(&expected).await;
}

pub async fn settling_nothing_answers_nothing(s: &Subject) {
    s.running(&s.job()).await;
    let expected = s.picture().await;

    assert_eq!(s.settle(&[]).await, []);

    s.shows(&expected).await;
}

pub async fn a_run_whose_lease_ran_out_can_settle_until_its_rescue(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE * 5);
    assert_eq!(s.expired(10).await.len(), 1);
    let mut expected = s.picture().await;

    s.apply(done(&run)).await;

    expected.settled(&done(&run), s.now());
    s.shows(&expected).await;
    assert_eq!(s.expired(10).await, []);
}

pub async fn a_thousand_settlements_fit_one_call(s: &Subject) {
    let jobs: Vec<NewJob> = (0..1_000).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let runs = s
        .claim(&ClaimRequest {
            limit: 1_000,
            ..s.request()
        })
        .await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    let settlements: Vec<Settlement> = runs.iter().map(done).collect();
    let replies = s.settle(&settlements).await;

    assert_eq!(replies, vec![Settled::Applied(JobState::Done); 1_000]);
    for settlement in &settlements {
        expected.settled(settlement, s.now());
    }
    s.shows(&expected).await;
}

/// A job that is put off keeps the priority and the deadline it was given.
pub async fn a_requeued_job_keeps_everything_it_was_given(s: &Subject) {
    let job = NewJob {
        priority: 7,
        deadline: Some(LEASE),
        ..s.job()
    };
    let run = s.running(&job).await;
    let change = Change::Queued { delay: SECOND };
    s.apply(Settlement {
        change,
        ..retry(&run, MS)
    })
    .await;
    s.advance(SECOND);

    let again = s.take().await;

    let (mut first, second) = (run.clone(), again.clone());
    first.attempt = 2;
    first.token = second.token;
    first.locked_until = second.locked_until;
    first.claimed_at = second.claimed_at;
    first.run_at = second.run_at;
    assert_eq!(first, second);
    assert_eq!(s.record(job.id).await.priority, 7);
}
