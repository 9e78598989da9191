//! A look through the whole store: sound after any life, and what breaks a rule is named. What only a
//! hand in the tables can break, each store breaks in tests of its own.

use std::time::Duration;

use queue_runtime::job::{
    About, Claimed, DedupeUntil, Invariant, JobId, NewJob, OnDuplicate, Settlement, Verified,
};
use queue_runtime::store::{Cancelling, ClaimRequest, Edit, Replaying};

use super::jobs::{
    HOUR, LEASE, REQUEST, SCHEMA, SECOND, called_off, dead, done, handed_back, held, job_type,
    keep, once, rerun, rescue, retry, snooze,
};
use super::subject::Subject;

async fn verify(s: &Subject, limit: usize) -> Verified {
    s.store().verify(limit).await.expect("verify answers")
}

async fn is_sound(s: &Subject) -> Verified {
    let verified = verify(s, 100).await;
    let is_clean = verified.is_sound() && verified.more.is_empty();
    assert!(is_clean, "{verified}");
    verified
}

fn found(verified: &Verified) -> Vec<(Invariant, About)> {
    let findings = verified.violations.iter();
    findings
        .map(|finding| (finding.invariant, finding.about.clone()))
        .collect()
}

/// Leaves jobs with every kind of end, key and history, some of them more than once.
async fn lives(s: &Subject) {
    let ends: [fn(&Claimed) -> Settlement; 3] = [done, dead, called_off];
    let mut ended = Vec::new();
    for end in ends {
        ended.push(s.settled(&s.job(), end).await.id);
    }
    for again in [
        |run: &_| retry(run, LEASE),
        |run: &_| snooze(run, LEASE),
        handed_back,
    ] {
        let run = s.settled(&s.job(), again).await;
        s.advance(LEASE);
        assert_eq!(s.take().await.id, run.id);
        assert_eq!(s.cancel(run.id).await, Cancelling::Requested);
    }
    let lost = s.running(&s.job()).await;
    s.advance(LEASE);
    s.apply(rescue(&lost)).await;
    s.apply(done(&s.take().await)).await;
    assert_eq!(s.replay(ended[1]).await, Replaying::Replayed);
    s.apply(dead(&s.take().await)).await;
    let edit = Edit::new("{}", 1).expect("an object");
    assert_eq!(s.replay_with(ended[2], &edit).await, Replaying::Replayed);
    assert_eq!(s.take().await.id, ended[2]);
    keys(s).await;
}

/// Leaves keys that wait, that are held, and that outlive their jobs.
async fn keys(s: &Subject) {
    let keyed = |dedupe| NewJob { dedupe, ..s.job() };
    let holder = s.running(&keyed(rerun("held"))).await;
    s.add(&keyed(rerun("held"))).await;
    s.apply(done(&holder)).await;
    let next = s.take().await;
    s.add(&keyed(rerun("held"))).await;
    s.apply(retry(&next, HOUR)).await;
    let window = held("often", DedupeUntil::Window(HOUR), OnDuplicate::Keep);
    s.settled(&keyed(window), done).await;
    let asked = |key, dedupe| NewJob {
        idempotency: once(key, REQUEST),
        dedupe,
        ..s.job()
    };
    s.settled(&asked("answered", None), done).await;
    let run = s.running(&asked("asked", keep("k"))).await;
    s.offer(&asked("asked too", keep("k"))).await;
    s.apply(dead(&run)).await;
    assert_eq!(s.replay(run.id).await, Replaying::Replayed);
    s.prune(Duration::from_millis(1), 1).await;
}

pub async fn an_empty_store_is_sound(s: &Subject) {
    assert_eq!(verify(s, 100).await, Verified::default());
    assert_eq!(
        verify(s, 100).await.to_string(),
        "jobs checked: 0, violations: 0, warnings: 0"
    );
}

pub async fn a_store_after_a_lively_history_is_sound(s: &Subject) {
    lives(s).await;
    let expected = s.picture().await;

    let verified = is_sound(s).await;

    let counts = s.store().counts().await.expect("counts answers");
    assert_eq!(verified.jobs, counts.total());
    s.shows(&expected).await;
    s.advance(HOUR * 2);
    s.prune(SECOND, 100).await;
    is_sound(s).await;
}

pub async fn counters_that_no_history_explains_are_found(s: &Subject) {
    let mut expected = Vec::new();
    for invariant in [Invariant::Attempts, Invariant::Crashes, Invariant::Snoozes] {
        let run = s.running(&s.job()).await;
        let mut lie = retry(&run, HOUR);
        match invariant {
            Invariant::Attempts => lie.attempts = 2,
            Invariant::Crashes => lie.crashes = 1,
            _ => lie.snoozes = 1,
        }
        s.apply(lie).await;
        expected.push((invariant, About::OneJob(run.id)));
    }

    let verified = verify(s, 100).await;

    assert_eq!(found(&verified), expected, "{verified}");
    assert!(!verified.is_sound());
    let words = format!("violation: crashes: {}: it counts 1 crashes", expected[1].1);
    assert!(verified.to_string().contains(&words), "{verified}");
}

pub async fn a_job_that_waits_for_one_attempt_too_many_is_found(s: &Subject) {
    let once = NewJob {
        max_attempts: 1,
        ..s.job()
    };
    let run = s.settled(&once, |run| retry(run, HOUR)).await;

    let verified = verify(s, 100).await;

    let expected = [(Invariant::Attempts, About::OneJob(run.id))];
    assert_eq!(found(&verified), expected, "{verified}");
}

pub async fn no_more_than_the_limit_is_listed_of_a_rule(s: &Subject) {
    let mut ids = Vec::<JobId>::new();
    for _ in 0..5 {
        let lie = |run: &_| Settlement {
            crashes: 1,
            ..retry(run, HOUR)
        };
        ids.push(s.settled(&s.job(), lie).await.id);
    }

    for (limit, listed, more) in [
        (0, 0, &[Invariant::Crashes][..]),
        (4, 4, &[Invariant::Crashes]),
        (5, 5, &[]),
    ] {
        let verified = verify(s, limit).await;
        assert_eq!(verified.violations.len(), listed);
        assert_eq!(verified.more, more, "{verified}");
        assert!(!verified.is_sound());
        let is_known = |finding: &_| matches!(finding, About::OneJob(id) if ids.contains(id));
        assert!(
            verified
                .violations
                .iter()
                .all(|found| is_known(&found.about))
        );
    }
}

pub async fn a_lease_that_nobody_takes_back_is_a_warning(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE + SECOND * 299);
    assert_eq!(is_sound(s).await.warnings, []);

    s.advance(SECOND);

    let verified = is_sound(s).await;
    let [warning] = &verified.warnings[..] else {
        panic!("{verified}")
    };
    let expected = (Invariant::Rescue, &About::OneJob(run.id));
    assert_eq!((warning.invariant, &warning.about), expected);
    s.apply(rescue(&run)).await;
    assert_eq!(is_sound(s).await.warnings, []);
}

/// What is looked at is one moment: halves of what happens meanwhile would be findings.
pub async fn a_look_while_everybody_works_finds_nothing(s: &Subject) {
    const ROUNDS: usize = 40;
    let work = async |name: &str| {
        let name = job_type(name);
        let request = ClaimRequest {
            job_types: vec![(name.clone(), SCHEMA)],
            limit: 3,
            ..s.request()
        };
        for _ in 0..ROUNDS {
            let job = || NewJob {
                job_type: name.clone(),
                dedupe: rerun("k"),
                idempotency: once("k", REQUEST),
                ..s.job()
            };
            let plain = NewJob {
                job_type: name.clone(),
                ..s.job()
            };
            s.insert(&[job(), plain]).await;
            let runs = s.claim(&request).await;
            s.offer(&NewJob {
                idempotency: None,
                ..job()
            })
            .await;
            let again = |run: &_| handed_back(run);
            let (first, rest) = runs.split_at(runs.len().min(1));
            let settlements: Vec<_> = first
                .iter()
                .map(again)
                .chain(rest.iter().map(done))
                .collect();
            s.settle(&settlements).await;
            s.prune(Duration::ZERO, 1).await;
        }
    };
    let look = async {
        for _ in 0..ROUNDS {
            is_sound(s).await;
        }
    };

    futures_util::join!(work("a"), work("b"), work("c"), look);

    is_sound(s).await;
}
