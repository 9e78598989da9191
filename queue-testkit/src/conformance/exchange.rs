//! Settling and claiming in one call.

use std::time::Duration;

use queue_runtime::job::JobState;
use queue_runtime::job::{NewJob, Settled};
use queue_runtime::store::ClaimRequest;

use super::jobs::{SECOND, dead, done, rerun, retry, worker};
use super::subject::Subject;

pub async fn an_exchange_settles_and_then_claims(s: &Subject) {
    let run = s.running(&s.job()).await;
    let next = s.job();
    s.add(&next).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    let (settled, claimed) = s.exchange(&[done(&run)], &s.request()).await;

    assert_eq!(settled, [Settled::Applied(JobState::Done)]);
    let [claimed] = &claimed[..] else {
        panic!("one job was due: {claimed:?}")
    };
    assert_eq!(claimed.id, next.id);
    expected.settled(&done(&run), s.now());
    expected.claimed(claimed, &worker("conformance@1"));
    s.shows(&expected).await;
}

pub async fn an_exchange_claims_what_its_settlements_made_due(s: &Subject) {
    let retried = s.running(&s.job()).await;
    let keyed = s
        .running(&NewJob {
            dedupe: rerun("k"),
            ..s.job()
        })
        .await;
    let waiting = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.add(&waiting).await;
    s.advance(SECOND);

    let settlements = [retry(&retried, Duration::ZERO), done(&keyed)];
    let (settled, claimed) = s.exchange(&settlements, &s.request()).await;

    assert_eq!(
        settled,
        [
            Settled::Applied(JobState::Queued),
            Settled::Applied(JobState::Done)
        ]
    );
    let ids: Vec<_> = claimed.iter().map(|run| run.id).collect();
    assert_eq!(ids, [waiting.id, retried.id], "by due time");
    assert!(claimed.iter().all(|run| run.token > keyed.token));
}

pub async fn an_exchange_claims_also_when_its_settlement_is_stale(s: &Subject) {
    let run = s.settled(&s.job(), done).await;
    let next = s.job();
    s.add(&next).await;

    let (settled, claimed) = s.exchange(&[dead(&run)], &s.request()).await;

    assert_eq!((settled, claimed.len()), (vec![Settled::Stale], 1));
    assert_eq!(s.record(run.id).await.state, JobState::Done);
}

pub async fn an_exchange_of_nothing_is_a_claim(s: &Subject) {
    let job = s.job();
    s.add(&job).await;

    let (settled, claimed) = s.exchange(&[], &s.request()).await;

    assert_eq!((settled, claimed.len()), (vec![], 1));
    let none = ClaimRequest {
        limit: 0,
        ..s.request()
    };
    let (settled, claimed) = s.exchange(&[done(&claimed[0])], &none).await;
    assert_eq!(
        (settled, claimed),
        (vec![Settled::Applied(JobState::Done)], vec![])
    );
}
