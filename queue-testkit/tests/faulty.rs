//! The store that fails on demand: what was done, what was not, and what the caller hears.

use std::sync::Arc;

use futures_util::FutureExt as _;
use queue_runtime::error::StoreErrorKind;
use queue_runtime::job::{JobState, Settled};
use queue_runtime::seam::Seam as _;
use queue_runtime::store::memory::MemoryStore;
use queue_runtime::store::{Admin as _, ClaimRequest, Store as _, Suspects};
use queue_testkit::Verb;
use queue_testkit::clock::TestSeam;
use queue_testkit::conformance::jobs::{
    JOB_TYPE, LEASE, QUEUE, SCHEMA, done, job_type, plain, queue, worker,
};
use queue_testkit::faulty::Faulty;
use queue_testkit::recorder::Recorder;

fn store() -> (TestSeam, Faulty) {
    let seam = TestSeam::new(1);
    let store = Faulty::new(Arc::new(MemoryStore::new(seam.shared())));
    (seam, store)
}

fn request(limit: usize) -> ClaimRequest {
    ClaimRequest {
        worker: worker("w@1"),
        queues: vec![queue(QUEUE)],
        job_types: vec![(job_type(JOB_TYPE), SCHEMA)],
        limit,
        lease: LEASE,
        suspects: Suspects::NONE,
    }
}

#[tokio::test]
async fn a_failed_call_does_nothing_and_the_next_one_works() {
    let (seam, store) = store();
    let job = plain(seam.job_id());
    store.fail_next(Verb::Insert, 2);

    for _ in 0..2 {
        let error = store
            .insert(std::slice::from_ref(&job))
            .await
            .expect_err("failed on demand");
        assert_eq!(
            (error.kind(), error.operation()),
            (StoreErrorKind::Unavailable, "insert")
        );
        assert_eq!(
            store.inner().job(job.id).await.expect("memory answers"),
            None
        );
    }

    assert!(store.insert(std::slice::from_ref(&job)).await.is_ok());
    assert_eq!(store.calls(Verb::Insert), 3);
}

#[tokio::test]
async fn a_call_can_fail_for_good() {
    let (_, store) = store();
    store.fail_next_as(Verb::Claim, 1, StoreErrorKind::Corrupt);

    let error = store
        .claim(&request(1))
        .await
        .expect_err("failed on demand");

    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_lost_reply_hides_work_that_was_done() {
    let (seam, store) = store();
    let job = plain(seam.job_id());
    store
        .insert(std::slice::from_ref(&job))
        .await
        .expect("no fault yet");
    let run = store
        .claim(&request(1))
        .await
        .expect("no fault yet")
        .remove(0);
    store.lose_reply_next(Verb::Settle);

    let error = store
        .settle(&[done(&run)])
        .await
        .expect_err("the reply is lost");

    assert!(error.is_transient());
    let record = store
        .job(job.id)
        .await
        .expect("no fault here")
        .expect("it is stored");
    assert_eq!(record.state, JobState::Done);
    assert_eq!(
        store.settle(&[done(&run)]).await.expect("no fault left"),
        [Settled::Stale]
    );
}

#[tokio::test]
async fn a_held_call_has_done_nothing_until_it_is_released() {
    let (seam, store) = store();
    let job = plain(seam.job_id());
    store.hold(Verb::Insert);
    let (held, id) = (store.clone(), job.id);
    let call = seam.spawn(Box::pin(async move {
        held.insert(&[job]).await.expect("released");
    }));
    store.held_reach(Verb::Insert, 1).await;
    assert_eq!(store.inner().job(id).await.expect("memory answers"), None);

    store.release(Verb::Insert);
    call.await.expect("no panic");

    assert!(
        store
            .inner()
            .job(id)
            .await
            .expect("memory answers")
            .is_some()
    );
}

#[tokio::test]
async fn a_held_reply_comes_after_the_work() {
    let (seam, store) = store();
    let job = plain(seam.job_id());
    store.hold_reply(Verb::Insert);
    let (jobs, id) = (vec![job], seam.job_id());
    let mut call = Box::pin(store.insert(&jobs));
    assert!((&mut call).now_or_never().is_none());
    store.held_reach(Verb::Insert, 1).await;
    assert!(
        store
            .inner()
            .job(jobs[0].id)
            .await
            .expect("memory answers")
            .is_some()
    );
    assert_eq!(store.inner().job(id).await.expect("memory answers"), None);

    store.release(Verb::Insert);

    assert!(call.await.is_ok());
}

#[tokio::test]
async fn a_caller_that_goes_away_is_no_longer_held() {
    let (seam, store) = store();
    store.hold(Verb::Insert);
    let jobs = [plain(seam.job_id())];
    let mut call = Box::pin(store.insert(&jobs));
    assert!((&mut call).now_or_never().is_none());
    store.held_reach(Verb::Insert, 1).await;

    drop(call);

    assert!(store.held_reach(Verb::Insert, 1).now_or_never().is_none());
}

#[tokio::test]
async fn only_so_many_jobs_are_handed_out() {
    let (seam, store) = store();
    let jobs = [(); 5].map(|()| plain(seam.job_id()));
    store.insert(&jobs).await.expect("no fault");
    store.allow_claims(Some(3));
    let claim = async |limit| store.claim(&request(limit)).await.expect("no fault").len();

    assert_eq!(claim(2).await, 2);
    assert_eq!(claim(9).await, 1);
    assert_eq!(claim(9).await, 0);

    store.allow_claims(None);
    assert_eq!(claim(9).await, 2);
    assert_eq!(store.last_request().await, request(9));
}

#[tokio::test]
async fn the_recorder_tells_calls_and_answers_in_order() {
    let (seam, faulty) = store();
    let recorder = Recorder::new(Arc::new(faulty.clone()), seam.shared());
    let job = plain(seam.job_id());
    recorder
        .insert(std::slice::from_ref(&job))
        .await
        .expect("no fault yet");
    seam.advance(LEASE);
    faulty.fail_next(Verb::Cancel, 1);
    recorder.cancel(job.id).await.expect_err("failed on demand");

    let calls = recorder.calls();

    assert_eq!(calls.len(), 2);
    assert_eq!(
        (calls[0].verb, calls[0].at),
        (Verb::Insert, TestSeam::START)
    );
    assert_eq!(calls[0].answered, format!("[New {{ id: {} }}]", job.id));
    assert_eq!((calls[1].verb, calls[1].at), (Verb::Cancel, seam.now()));
    assert_eq!(calls[1].answered, "error: cancel: failed on demand");
    assert_eq!(recorder.inserted_ids(), [job.id]);
    assert!(
        recorder
            .history()
            .starts_with("2 calls, 0 older ones dropped\n")
    );
}
