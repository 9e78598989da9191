//! Many callers at once: whatever the order, what they were told and what is stored agree.
//!
//! Every case starts its callers together on several threads and then checks invariants of the
//! answers, never timings.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use queue_runtime::job::{Claimed, JobId, NewJob, Settled, Settlement};
use queue_runtime::store::{ClaimRequest, Inserted, Store};
use tokio::sync::Barrier;

use super::jobs::{REQUEST, called_off, dead, done, keep, once, rerun, worker};
use super::subject::Subject;

/// Runs `count` callers of the store, all let go at one moment, and returns what each came to.
pub(super) async fn together<T, F>(
    s: &Subject,
    count: usize,
    call: impl Fn(usize, Arc<dyn Store>) -> F,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    use queue_runtime::seam::Seam as _;
    let start = Arc::new(Barrier::new(count));
    let results = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for index in 0..count {
        let (start, results) = (Arc::clone(&start), Arc::clone(&results));
        let call = call(index, s.store());
        tasks.push(s.seam().spawn(Box::pin(async move {
            start.wait().await;
            let result = call.await;
            results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((index, result));
        })));
    }
    for task in tasks {
        task.await.expect("no caller panics");
    }
    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.drain(..).map(|(_, result)| result).collect()
}

/// Offers each job in a call of its own, all at once.
async fn offered_at_once(s: &Subject, jobs: Vec<NewJob>) -> Vec<Inserted> {
    together(s, jobs.len(), |index, store| {
        let job = jobs[index].clone();
        async move {
            store
                .insert(&[job])
                .await
                .expect("insert answers")
                .remove(0)
        }
    })
    .await
}

/// Says that one of the replies is `New`, and that all others name its job.
fn one_is_new_and_answers_for_the_others(replies: &[Inserted]) -> JobId {
    let new: Vec<JobId> = replies
        .iter()
        .filter_map(|reply| match reply {
            Inserted::New { id } => Some(*id),
            _ => None,
        })
        .collect();
    let [id] = new[..] else {
        panic!("exactly one is new: {replies:?}")
    };
    for reply in replies {
        let agrees = match reply {
            Inserted::New { .. } => true,
            Inserted::Duplicate { existing, .. } => *existing == id,
            Inserted::Conflict { .. } => false,
        };
        assert!(agrees, "{reply:?} names another job than {id}");
    }
    id
}

pub async fn a_hundred_equal_requests_are_one_job(s: &Subject) {
    let asked = |_| NewJob {
        idempotency: once("i", REQUEST),
        ..s.job()
    };

    let replies = offered_at_once(s, (0..100).map(asked).collect()).await;

    let id = one_is_new_and_answers_for_the_others(&replies);
    let jobs: Vec<JobId> = s.picture().await.jobs().keys().copied().collect();
    assert_eq!(jobs, [id]);
}

pub async fn a_hundred_equal_dedupe_keys_are_one_live_job(s: &Subject) {
    let keyed = |_| NewJob {
        dedupe: keep("k"),
        ..s.job()
    };

    let replies = offered_at_once(s, (0..100).map(keyed).collect()).await;

    let id = one_is_new_and_answers_for_the_others(&replies);
    let jobs: Vec<JobId> = s.picture().await.jobs().keys().copied().collect();
    assert_eq!(jobs, [id]);
}

pub async fn a_hundred_reruns_leave_one_behind_the_running_job(s: &Subject) {
    let running = s
        .running(&NewJob {
            dedupe: rerun("k"),
            ..s.job()
        })
        .await;
    let keyed = |_| NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };

    let replies = offered_at_once(s, (0..100).map(keyed).collect()).await;

    let behind = one_is_new_and_answers_for_the_others(&replies);
    let jobs: BTreeSet<JobId> = s.picture().await.jobs().keys().copied().collect();
    assert_eq!(jobs, BTreeSet::from([running.id, behind]));
    assert_eq!(s.record(behind).await.dedupe_slot, 1);
}

pub async fn a_batch_sent_by_ten_callers_is_stored_once(s: &Subject) {
    let batch: Vec<NewJob> = (0..20).map(|_| s.job()).collect();

    let replies = together(s, 10, |_, store| {
        let batch = batch.clone();
        async move { store.insert(&batch).await.expect("insert answers") }
    })
    .await;

    let new: Vec<Inserted> = batch
        .iter()
        .map(|job| Inserted::New { id: job.id })
        .collect();
    assert!(replies.iter().all(|reply| *reply == new), "{replies:?}");
    assert_eq!(s.picture().await.jobs().len(), 20);
}

pub async fn ten_claimers_take_each_job_once(s: &Subject) {
    let jobs: Vec<NewJob> = (0..500).map(|_| s.job()).collect();
    s.insert(&jobs).await;

    let claimed = together(s, 10, |index, store| {
        let me = worker(&format!("w@{index}"));
        let request = ClaimRequest {
            worker: me,
            limit: 7,
            ..s.request()
        };
        async move {
            let mut mine: Vec<Claimed> = Vec::new();
            loop {
                let batch = store.claim(&request).await.expect("claim answers");
                if batch.is_empty() {
                    return mine;
                }
                mine.extend(batch);
            }
        }
    })
    .await;

    let mut expected: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let mut taken: Vec<JobId> = claimed.iter().flatten().map(|run| run.id).collect();
    expected.sort();
    taken.sort();
    assert_eq!(taken, expected, "every job exactly once");
    let tokens: BTreeSet<_> = claimed.iter().flatten().map(|run| run.token).collect();
    assert_eq!(tokens.len(), 500);
    let picture = s.picture().await;
    for (index, mine) in claimed.iter().enumerate() {
        for run in mine {
            let record = &picture.jobs()[&run.id].record;
            assert_eq!(record.locked_by, Some(worker(&format!("w@{index}"))));
            assert_eq!((record.lock_token, record.attempts), (Some(run.token), 1));
        }
    }
}

/// A job that moves between two tables is in exactly one of them at every sample.
pub async fn no_sample_misses_a_job_or_counts_it_twice(s: &Subject) {
    let jobs: Vec<NewJob> = (0..60).map(|_| s.job()).collect();
    s.insert(&jobs).await;

    let samples = together(s, 4, |index, store| {
        let request = ClaimRequest {
            limit: 1,
            ..s.request()
        };
        async move {
            let mut totals = BTreeSet::new();
            if index == 0 {
                for _ in 0..200 {
                    totals.insert(store.counts().await.expect("counts answers").total());
                }
                return totals;
            }
            while let Some(run) = store.claim(&request).await.expect("claim answers").pop() {
                store.settle(&[done(&run)]).await.expect("settle answers");
            }
            totals
        }
    })
    .await;

    assert_eq!(samples[0], BTreeSet::from([60]));
}

/// Producers, workers and operators on three keys at once; the rules hold, and nothing is lost.
pub async fn a_crowd_of_everybody_leaves_a_sound_store(s: &Subject) {
    let offers: Vec<Vec<NewJob>> = (0..4)
        .map(|producer| {
            let keyed = |n: usize| {
                let key = format!("k{}", (n + producer) % 3);
                let dedupe = if n.is_multiple_of(2) {
                    rerun(&key)
                } else {
                    super::jobs::replace(&key)
                };
                NewJob {
                    dedupe,
                    max_attempts: 1_000,
                    ..s.job()
                }
            };
            (0..25).map(keyed).collect()
        })
        .collect();

    let stored = together(s, 8, |index, store| {
        let mine = offers.get(index).cloned().unwrap_or_default();
        let request = ClaimRequest {
            limit: 2,
            ..s.request()
        };
        async move {
            let mut stored = 0;
            for job in mine {
                let reply = store
                    .insert(&[job])
                    .await
                    .expect("insert answers")
                    .remove(0);
                stored += usize::from(matches!(reply, Inserted::New { .. }));
            }
            for round in 0..25 {
                let runs = store.claim(&request).await.expect("claim answers");
                for run in runs {
                    let kinds: [fn(&Claimed) -> Settlement; 4] = [
                        done,
                        |run| super::jobs::retry(run, Duration::ZERO),
                        called_off,
                        dead,
                    ];
                    let settlement = kinds[(round + index) % 4](&run);
                    let replies = store.settle(&[settlement]).await.expect("settle answers");
                    assert_ne!(replies, [Settled::Stale], "nobody else held the lease");
                    if round % 3 == 0 {
                        store.cancel(run.id).await.expect("cancel answers");
                    }
                }
            }
            stored
        }
    })
    .await;

    let stored: usize = stored.into_iter().sum();
    assert_eq!(s.picture().await.jobs().len(), stored);
    loop {
        let runs = s.claim_all().await;
        if runs.is_empty() {
            break;
        }
        for run in runs {
            s.apply(done(&run)).await;
        }
    }
    let picture = s.picture().await;
    assert!(
        picture
            .jobs()
            .values()
            .all(|seen| seen.record.state.is_final())
    );
}
