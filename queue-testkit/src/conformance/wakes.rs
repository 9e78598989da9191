//! Hints: a listener in this process hears of claimable jobs, at the latest by the time the store
//! has answered the next call.
//!
//! A hint is never needed for correctness, so a store may leave this family out. It may also give
//! hints that nobody needed; only a missing one fails here.

use std::time::Duration;

use futures_util::FutureExt as _;
use queue_runtime::job::{Claimed, NewJob, Settlement};
use queue_runtime::store::{Edit, WakeListener};

use super::jobs::{LEASE, called_off, dead, done, handed_back, rerun, rescue, retry};
use super::subject::Subject;

/// Says whether a hint has come by the time the store has answered another call.
async fn heard(s: &Subject, listener: &mut WakeListener) -> bool {
    s.cancel(s.job().id).await;
    listener.wait().now_or_never().is_some()
}

/// Listens from now on, having heard everything before.
async fn listen(s: &Subject) -> WakeListener {
    let mut listener = s.store().wakes();
    for _ in 0..10 {
        if !heard(s, &mut listener).await {
            return listener;
        }
    }
    panic!("the store gives hints for nothing, again and again")
}

/// One hint may come late: a store that has just connected to hear of other processes does not
/// know what it has missed.
pub async fn silence_is_not_a_hint(s: &Subject) {
    let mut listener = listen(s).await;
    let mut hints = 0;
    for _ in 0..20 {
        hints += usize::from(heard(s, &mut listener).await);
    }
    assert!(hints <= 1, "{hints} hints");
}

pub async fn an_insert_wakes_every_listener(s: &Subject) {
    let (mut one, mut two) = (listen(s).await, listen(s).await);

    s.add(&s.job()).await;

    assert!(heard(s, &mut one).await && heard(s, &mut two).await);
}

pub async fn a_job_that_is_due_again_at_once_wakes(s: &Subject) {
    let at_once: fn(&Claimed) -> Settlement = |run| retry(run, Duration::ZERO);
    for settlement in [handed_back, at_once] {
        let run = s.running(&s.job()).await;
        let mut listener = listen(s).await;

        s.apply(settlement(&run)).await;

        assert!(heard(s, &mut listener).await);
        s.apply(done(&s.take().await)).await;
    }
}

pub async fn a_rescue_wakes(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);
    let mut listener = listen(s).await;

    s.apply(rescue(&run)).await;

    assert!(heard(s, &mut listener).await);
}

pub async fn the_end_of_a_job_wakes_for_the_one_behind_it(s: &Subject) {
    for settlement in [done, dead, called_off] {
        let keyed = || NewJob {
            dedupe: rerun("k"),
            ..s.job()
        };
        let run = s.running(&keyed()).await;
        s.add(&keyed()).await;
        let mut listener = listen(s).await;

        s.apply(settlement(&run)).await;

        assert!(heard(s, &mut listener).await);
        s.apply(done(&s.take().await)).await;
    }
}

pub async fn a_cancel_wakes_for_the_one_behind(s: &Subject) {
    let keyed = || NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    let run = s.running(&keyed()).await;
    s.add(&keyed()).await;
    s.apply(retry(&run, LEASE)).await;
    let mut listener = listen(s).await;

    s.cancel(run.id).await;

    assert!(heard(s, &mut listener).await);
}

pub async fn a_replay_wakes(s: &Subject) {
    let run = s.settled(&s.job(), dead).await;
    let mut listener = listen(s).await;

    s.replay(run.id).await;

    assert!(heard(s, &mut listener).await);
}

pub async fn an_edit_wakes(s: &Subject) {
    let run = s.settled(&s.job(), dead).await;
    let mut listener = listen(s).await;

    let edit = Edit::new("{}", 1).expect("a payload that may be stored");
    s.replay_with(run.id, &edit).await;

    assert!(heard(s, &mut listener).await);
}
