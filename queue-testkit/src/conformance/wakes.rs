//! Hints: a listener in this process hears of claimable jobs by the time the verb has answered.
//!
//! A hint is never needed for correctness, so a store may leave this family out. It may also give
//! hints that nobody needed; only a missing one fails here.

use std::time::Duration;

use futures_util::FutureExt as _;
use queue_runtime::job::{Claimed, NewJob, Settlement};
use queue_runtime::store::WakeListener;

use super::jobs::{LEASE, called_off, dead, done, handed_back, rerun, rescue, retry};
use super::subject::Subject;

fn heard(listener: &mut WakeListener) -> bool {
    listener.wait().now_or_never().is_some()
}

/// Listens from now on, having heard everything before.
fn listen(s: &Subject) -> WakeListener {
    let mut listener = s.store().wakes();
    while heard(&mut listener) {}
    listener
}

pub async fn silence_is_not_a_hint(s: &Subject) {
    let mut listener = listen(s);
    assert!(!heard(&mut listener));
}

pub async fn an_insert_wakes_every_listener(s: &Subject) {
    let (mut one, mut two) = (listen(s), listen(s));

    s.add(&s.job()).await;

    assert!(heard(&mut one) && heard(&mut two));
    assert!(!heard(&mut one), "one hint is heard once");
}

pub async fn a_job_that_is_due_again_at_once_wakes(s: &Subject) {
    let at_once: fn(&Claimed) -> Settlement = |run| retry(run, Duration::ZERO);
    for settlement in [handed_back, at_once] {
        let run = s.running(&s.job()).await;
        let mut listener = listen(s);

        s.apply(settlement(&run)).await;

        assert!(heard(&mut listener));
        s.apply(done(&s.take().await)).await;
    }
}

pub async fn a_rescue_wakes(s: &Subject) {
    let run = s.running(&s.job()).await;
    s.advance(LEASE);
    let mut listener = listen(s);

    s.apply(rescue(&run)).await;

    assert!(heard(&mut listener));
}

pub async fn the_end_of_a_job_wakes_for_the_one_behind_it(s: &Subject) {
    for settlement in [done, dead, called_off] {
        let keyed = || NewJob {
            dedupe: rerun("k"),
            ..s.job()
        };
        let run = s.running(&keyed()).await;
        s.add(&keyed()).await;
        let mut listener = listen(s);

        s.apply(settlement(&run)).await;

        assert!(heard(&mut listener));
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
    let mut listener = listen(s);

    s.cancel(run.id).await;

    assert!(heard(&mut listener));
}

pub async fn a_replay_wakes(s: &Subject) {
    let run = s.settled(&s.job(), dead).await;
    let mut listener = listen(s);

    s.replay(run.id).await;

    assert!(heard(&mut listener));
}
