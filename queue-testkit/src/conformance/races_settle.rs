//! Many settlements, renewals, rescues, cancels and replays of one job at once.

use std::collections::BTreeSet;

use queue_runtime::job::{JobId, JobState, NewJob, Settled, Settlement};
use queue_runtime::store::{Cancelling, ClaimRequest, Extended, Inserted, Replaying};

use super::jobs::{LEASE, called_off, dead, done, keep, rerun, rescue};
use super::races::together;
use super::subject::Subject;

pub async fn one_of_many_settlements_of_a_run_is_applied(s: &Subject) {
    for _ in 0..10 {
        let run = s.running(&s.job()).await;
        let kinds = [done, dead, called_off];

        let replies = together(s, 12, |index, store| {
            let settlement = kinds[index % 3](&run);
            async move {
                store
                    .settle(&[settlement])
                    .await
                    .expect("settle answers")
                    .remove(0)
            }
        })
        .await;

        let applied: Vec<_> = replies
            .iter()
            .filter(|reply| **reply != Settled::Stale)
            .copied()
            .collect();
        assert_eq!(applied, [Settled::Applied(s.record(run.id).await.state)]);
    }
    s.picture().await;
}

pub async fn a_renewal_and_a_rescue_never_both_win(s: &Subject) {
    for _ in 0..20 {
        let run = s.running(&s.job()).await;
        s.advance(LEASE);
        s.extend(&[], LEASE).await;

        let replies = together(s, 2, |index, store| {
            let (lease, rescue) = (run.lease(), rescue(&run));
            async move {
                if index == 0 {
                    let mut heartbeat = store.heartbeat().await.expect("a heartbeat opens");
                    let replies = heartbeat.extend(&[lease], LEASE).await;
                    replies.expect("extend answers")[0] == Extended::Kept
                } else {
                    let replies = store.settle(&[rescue]).await.expect("settle answers");
                    replies[0] != Settled::Stale
                }
            }
        })
        .await;

        assert_ne!(
            replies[0], replies[1],
            "exactly one of renewal and rescue: {replies:?}"
        );
        let running = s.record(run.id).await.state == JobState::Processing;
        assert_eq!(running, replies[0]);
        let run = if running { run } else { s.take().await };
        s.apply(done(&run)).await;
    }
}

pub async fn a_settlement_and_a_rescue_never_both_win(s: &Subject) {
    for _ in 0..20 {
        let run = s.running(&s.job()).await;
        s.advance(LEASE);

        let replies = together(s, 2, |index, store| {
            let settlement = if index == 0 { done(&run) } else { rescue(&run) };
            async move {
                store
                    .settle(&[settlement])
                    .await
                    .expect("settle answers")
                    .remove(0)
            }
        })
        .await;

        match replies[..] {
            [Settled::Applied(JobState::Done), Settled::Stale] => {}
            [Settled::Stale, Settled::Applied(JobState::Queued)] => {
                s.apply(done(&s.take().await)).await;
            }
            _ => panic!("exactly one of settlement and rescue: {replies:?}"),
        }
    }
    s.picture().await;
}

pub async fn many_rescuers_rescue_each_job_once(s: &Subject) {
    let jobs: Vec<NewJob> = (0..50).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let runs = s.claim_all().await;
    s.advance(LEASE);

    let replies = together(s, 5, |_, store| {
        let rescues: Vec<Settlement> = runs.iter().map(rescue).collect();
        async move { store.settle(&rescues).await.expect("settle answers") }
    })
    .await;

    for index in 0..50 {
        let applied = replies
            .iter()
            .filter(|mine| mine[index] != Settled::Stale)
            .count();
        assert_eq!(applied, 1, "job {index} is rescued once");
    }
    for seen in s.picture().await.jobs().values() {
        assert_eq!(
            (seen.record.state, seen.record.crashes),
            (JobState::Queued, 1)
        );
    }
}

pub async fn a_cancel_and_a_claim_agree_on_who_was_first(s: &Subject) {
    let jobs: Vec<NewJob> = (0..60).map(|_| s.job()).collect();
    s.insert(&jobs).await;

    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let answers = together(s, 6, |index, store| {
        let request = ClaimRequest {
            limit: 5,
            ..s.request()
        };
        let mine: Vec<JobId> = ids.iter().copied().skip(index).step_by(6).collect();
        async move {
            let (mut cancels, mut claims) = (Vec::new(), Vec::new());
            for id in mine {
                cancels.push((id, store.cancel(id).await.expect("cancel answers")));
                claims.extend(store.claim(&request).await.expect("claim answers"));
            }
            (cancels, claims)
        }
    })
    .await;

    let claimed: BTreeSet<JobId> = answers
        .iter()
        .flat_map(|(_, claims)| claims)
        .map(|run| run.id)
        .collect();
    for (id, cancelling) in answers.iter().flat_map(|(cancels, _)| cancels) {
        match cancelling {
            Cancelling::Cancelled => assert!(!claimed.contains(id), "{id} was called off first"),
            Cancelling::Requested => assert!(claimed.contains(id), "{id} was claimed first"),
            other => panic!("{id}: {other:?}"),
        }
    }
    s.picture().await;
}

pub async fn one_of_many_replays_takes_place(s: &Subject) {
    let run = s.settled(&s.job(), dead).await;

    let replies = together(s, 20, |_, store| async move {
        store.replay(run.id, true).await.expect("replay answers")
    })
    .await;

    let replayed = replies
        .iter()
        .filter(|reply| **reply == Replaying::Replayed)
        .count();
    let refused = Replaying::NotReplayable(JobState::Queued);
    let refused = replies.iter().filter(|reply| **reply == refused).count();
    assert_eq!((replayed, refused), (1, 19));
    assert_eq!(s.record(run.id).await.generation, 1);
}

pub async fn a_replay_and_a_newcomer_never_both_take_the_key(s: &Subject) {
    for _ in 0..10 {
        let old = NewJob {
            dedupe: keep("k"),
            ..s.job()
        };
        s.settled(&old, dead).await;
        let new = NewJob {
            dedupe: keep("k"),
            ..s.job()
        };

        let tookit = together(s, 2, |index, store| {
            let (old, new) = (old.id, new.clone());
            async move {
                if index == 0 {
                    let reply = store.replay(old, false).await.expect("replay answers");
                    reply == Replaying::Replayed
                } else {
                    let reply = store
                        .insert(&[new])
                        .await
                        .expect("insert answers")
                        .remove(0);
                    matches!(reply, Inserted::New { .. })
                }
            }
        })
        .await;

        assert_ne!(tookit[0], tookit[1], "exactly one takes the key");
        let [run] = &s.claim_all().await[..] else {
            panic!("one live job of the key")
        };
        assert_eq!(run.id, if tookit[0] { old.id } else { new.id });
        s.apply(done(run)).await;
    }
}

pub async fn a_rerun_asked_for_while_the_job_ends_is_never_lost(s: &Subject) {
    for _ in 0..20 {
        let run = s
            .running(&NewJob {
                dedupe: rerun("k"),
                ..s.job()
            })
            .await;
        let new = NewJob {
            dedupe: rerun("k"),
            ..s.job()
        };

        together(s, 2, |index, store| {
            let (settlement, new) = (done(&run), new.clone());
            async move {
                if index == 0 {
                    let replies = store.settle(&[settlement]).await.expect("settle answers");
                    assert_eq!(replies, [Settled::Applied(JobState::Done)]);
                } else {
                    let replies = store
                        .insert(std::slice::from_ref(&new))
                        .await
                        .expect("insert answers");
                    assert_eq!(replies, [Inserted::New { id: new.id }]);
                }
            }
        })
        .await;

        let next = s.take().await;
        assert_eq!(next.id, new.id);
        s.apply(done(&next)).await;
    }
    s.picture().await;
}
