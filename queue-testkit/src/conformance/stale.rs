//! Settlements that may not be applied: they change nothing.

use queue_runtime::job::{JobState, LeaseToken};
use queue_runtime::job::{Settled, Settlement};

use super::jobs::{LEASE, MS, SECOND, called_off, dead, done, handed_back, rescue, retry};
use super::subject::Subject;

pub async fn stale_token_cannot_settle(s: &Subject) {
    let run = s.running(&s.job()).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    for token in [
        run.token.get() + 1,
        run.token.get() - 1,
        0,
        i64::MAX,
        i64::MIN,
    ] {
        let stale = Settlement {
            token: LeaseToken::new(token),
            ..done(&run)
        };
        assert_eq!(s.settle(&[stale]).await, [Settled::Stale], "token {token}");
    }

    s.shows(&expected).await;
    s.apply(done(&run)).await;
}

pub async fn a_token_of_another_job_cannot_settle(s: &Subject) {
    s.insert(&[s.job(), s.job()]).await;
    let runs = s.claim_all().await;
    let expected = s.picture().await;
    s.advance(SECOND);

    let crossed = Settlement {
        token: runs[1].token,
        ..done(&runs[0])
    };
    assert_eq!(s.settle(&[crossed]).await, [Settled::Stale]);

    s.shows(&expected).await;
}

pub async fn a_late_settle_from_a_rescued_run_changes_nothing(s: &Subject) {
    let late = s.running(&s.job()).await;
    s.advance(LEASE);
    s.apply(rescue(&late)).await;
    let waiting = s.picture().await;
    s.advance(SECOND);
    for settlement in [
        done(&late),
        retry(&late, MS),
        dead(&late),
        called_off(&late),
    ] {
        assert_eq!(
            s.settle(&[settlement]).await,
            [Settled::Stale],
            "while the job waits"
        );
    }
    s.shows(&waiting).await;

    let next = s.take().await;
    let running = s.picture().await;
    s.advance(SECOND);
    for settlement in [
        done(&late),
        retry(&late, MS),
        dead(&late),
        called_off(&late),
    ] {
        assert_eq!(
            s.settle(&[settlement]).await,
            [Settled::Stale],
            "while the next run runs"
        );
    }
    s.shows(&running).await;

    s.apply(done(&next)).await;
    let finished = s.picture().await;
    s.advance(SECOND);
    assert_eq!(
        s.settle(&[dead(&late)]).await,
        [Settled::Stale],
        "after the next run"
    );
    s.shows(&finished).await;
}

pub async fn a_settlement_that_is_sent_twice_is_applied_once(s: &Subject) {
    for settlement in [done, dead, called_off, handed_back] {
        let run = s.settled(&s.job(), settlement).await;
        let expected = s.picture().await;
        s.advance(SECOND);

        assert_eq!(s.settle(&[settlement(&run)]).await, [Settled::Stale]);

        s.shows(&expected).await;
        if let [handed_back] = &s.claim_all().await[..] {
            s.apply(done(handed_back)).await;
        }
    }
}

pub async fn the_second_settlement_of_a_batch_for_one_run_is_stale(s: &Subject) {
    let run = s.running(&s.job()).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);

    let replies = s.settle(&[retry(&run, SECOND), done(&run)]).await;

    assert_eq!(
        replies,
        [Settled::Applied(JobState::Queued), Settled::Stale]
    );
    expected.settled(&retry(&run, SECOND), s.now());
    s.shows(&expected).await;
}

pub async fn a_job_that_is_not_running_cannot_be_settled(s: &Subject) {
    let waiting = s.job();
    let run = s.running(&s.job()).await;
    s.add(&waiting).await;
    let unknown = Settlement {
        id: s.job().id,
        ..done(&run)
    };
    let never_claimed = Settlement {
        id: waiting.id,
        ..done(&run)
    };
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(
        s.settle(&[unknown, never_claimed]).await,
        [Settled::Stale; 2]
    );

    s.shows(&expected).await;
}

pub async fn no_settlement_leads_out_of_a_final_state(s: &Subject) {
    let runs = [
        s.settled(&s.job(), done).await,
        s.settled(&s.job(), dead).await,
        s.settled(&s.job(), called_off).await,
    ];
    let expected = s.picture().await;
    s.advance(LEASE * 2);

    for run in &runs {
        for settlement in [
            done(run),
            dead(run),
            called_off(run),
            retry(run, MS),
            rescue(run),
        ] {
            assert_eq!(
                s.settle(std::slice::from_ref(&settlement)).await,
                [Settled::Stale],
                "{settlement:?}"
            );
        }
    }

    s.shows(&expected).await;
}
