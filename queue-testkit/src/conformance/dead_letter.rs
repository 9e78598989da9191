//! Replaying dead letters and cancelled jobs.

use std::time::Duration;

use queue_runtime::job::{CacheKey, Due, JobState, NewJob, Settled};
use queue_runtime::store::{Cancelling, Inserted, Replaying};

use super::jobs::{LEASE, SECOND, called_off, dead, done, keep, rerun, rescue, retry, snooze};
use super::picture::Picture;
use super::subject::Subject;

/// Replays a job, and says that it waits again and nothing else changed.
async fn waits_again(s: &Subject, job: &NewJob) {
    let mut expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.replay(job.id).await, Replaying::Replayed);

    expected.replayed(job.id, s.now());
    s.shows(&expected).await;
}

pub async fn a_replayed_dead_letter_waits_again(s: &Subject) {
    let job = NewJob {
        deadline: Some(SECOND * 5),
        priority: 3,
        cache: Some(CacheKey {
            key: "c".to_owned(),
            version: 2,
        }),
        ..s.job()
    };
    s.settled(&job, dead).await;

    waits_again(s, &job).await;

    let record = s.record(job.id).await;
    assert_eq!(record.last_error.as_deref(), Some("no such user"));
    assert_eq!(s.take().await.id, job.id);
}

pub async fn a_replayed_cancelled_job_waits_again(s: &Subject) {
    let (waited, ran) = (s.job(), s.job());
    let run = s.running(&ran).await;
    s.cancel(ran.id).await;
    s.apply(called_off(&run)).await;
    s.add(&waited).await;
    s.cancel(waited.id).await;

    waits_again(s, &ran).await;
    waits_again(s, &waited).await;

    assert_eq!(s.claim_all().await.len(), 2);
}

pub async fn a_replayed_job_is_due_at_once(s: &Subject) {
    let job = NewJob {
        due: Due::After(LEASE * 60),
        ..s.job()
    };
    s.add(&job).await;
    s.cancel(job.id).await;

    s.replay(job.id).await;

    let run = s.take().await;
    assert_eq!((run.id, run.run_at), (job.id, s.now()));
}

pub async fn a_replay_starts_the_counters_from_zero(s: &Subject) {
    let job = s.job();
    let run = s.running(&job).await;
    s.apply(snooze(&run, Duration::ZERO)).await;
    let run = s.take().await;
    s.advance(LEASE);
    s.apply(rescue(&run)).await;
    let run = s.take().await;
    let settlement = dead(&run);
    s.apply(queue_runtime::job::Settlement {
        crashes: 1,
        ..settlement
    })
    .await;
    let record = s.record(job.id).await;
    assert_eq!((record.attempts, record.crashes, record.snoozes), (2, 1, 1));

    waits_again(s, &job).await;

    let again = s.take().await;
    assert_eq!((again.attempt, again.crashes, again.snoozes), (1, 0, 0));
    assert!(again.token > run.token, "the token still rises");
}

pub async fn a_replayed_job_keeps_its_history(s: &Subject) {
    let job = s.job();
    let first = s.settled(&job, dead).await;
    s.replay(job.id).await;
    let second = s.take().await;
    s.apply(done(&second)).await;

    let history = s.attempts(job.id).await;

    let rows: Vec<_> = history.iter().map(|run| (run.token, run.number)).collect();
    assert_eq!(rows, [(first.token, 1), (second.token, 1)]);
}

pub async fn only_a_replay_as_new_raises_the_generation(s: &Subject) {
    let job = s.job();
    s.settled(&job, dead).await;
    for (as_new, generation) in [(false, 0), (true, 1), (false, 1), (true, 2)] {
        let reply = s
            .store()
            .replay(job.id, as_new)
            .await
            .expect("replay answers");
        assert_eq!(reply, Replaying::Replayed);
        let run = s.take().await;
        assert_eq!(run.generation, generation);
        s.apply(dead(&run)).await;
        assert_eq!(s.record(job.id).await.generation, generation);
    }
}

pub async fn a_job_in_any_other_state_is_not_replayable(s: &Subject) {
    let finished = s.job();
    s.settled(&finished, done).await;
    let running = s.job();
    s.running(&running).await;
    let waiting = s.job();
    s.add(&waiting).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    let states = [
        (finished, JobState::Done),
        (running, JobState::Processing),
        (waiting, JobState::Queued),
    ];
    for (job, state) in states {
        assert_eq!(s.replay(job.id).await, Replaying::NotReplayable(state));
    }

    s.shows(&expected).await;
}

pub async fn replaying_nothing_is_not_found(s: &Subject) {
    let job = s.job();
    assert_eq!(s.replay(job.id).await, Replaying::NotFound);
    s.shows(&Picture::default()).await;
}

pub async fn a_second_replay_changes_nothing(s: &Subject) {
    let job = s.job();
    s.settled(&job, dead).await;
    s.replay(job.id).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(
        s.replay(job.id).await,
        Replaying::NotReplayable(JobState::Queued)
    );

    s.shows(&expected).await;
}

pub async fn a_run_from_before_the_replay_cannot_settle(s: &Subject) {
    let job = s.job();
    let old = s.settled(&job, dead).await;
    s.replay(job.id).await;
    assert_eq!(s.settle(&[done(&old)]).await, [Settled::Stale]);
    let new = s.take().await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.settle(&[done(&old)]).await, [Settled::Stale]);

    s.shows(&expected).await;
    s.apply(done(&new)).await;
}

/// Brings a keyed job to its end, and another live job under the key into a state; the first one
/// then stays where it is.
async fn stays_while(s: &Subject, settle: impl AsyncFnOnce(&NewJob)) {
    let old = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    s.settled(&old, dead).await;
    let live = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.add(&live).await;
    settle(&live).await;
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.replay(old.id).await, Replaying::Duplicate(live.id));

    s.shows(&expected).await;
}

pub async fn a_dead_letter_stays_while_a_waiting_job_holds_its_key(s: &Subject) {
    stays_while(s, async |_| ()).await;
}

pub async fn a_dead_letter_stays_while_a_running_job_holds_its_key(s: &Subject) {
    stays_while(s, async |_| drop(s.take().await)).await;
}

pub async fn a_dead_letter_stays_while_a_retrying_job_holds_its_key(s: &Subject) {
    stays_while(s, async |_| {
        let run = s.take().await;
        s.apply(retry(&run, LEASE)).await;
    })
    .await;
}

pub async fn a_dead_letter_stays_while_two_jobs_hold_its_key(s: &Subject) {
    stays_while(s, async |_| {
        s.take().await;
        s.add(&NewJob {
            dedupe: rerun("k"),
            ..s.job()
        })
        .await;
    })
    .await;
}

pub async fn a_dead_letter_can_be_replayed_once_its_key_is_free(s: &Subject) {
    let old = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    s.settled(&old, dead).await;
    let live = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    s.settled(&live, done).await;

    waits_again(s, &old).await;

    let state = JobState::Queued;
    let kept = Inserted::Duplicate {
        existing: old.id,
        state,
        payload_differs: false,
    };
    let newcomer = NewJob {
        dedupe: keep("k"),
        ..s.job()
    };
    assert_eq!(s.offer(&newcomer).await, kept, "it holds its key again");
}

pub async fn a_cancelled_job_from_behind_comes_back_as_the_live_one(s: &Subject) {
    let first = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    let run = s.running(&first).await;
    let behind = NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.add(&behind).await;
    assert_eq!(s.cancel(behind.id).await, Cancelling::Cancelled);
    assert_eq!(s.replay(behind.id).await, Replaying::Duplicate(first.id));
    s.apply(done(&run)).await;

    waits_again(s, &behind).await;

    assert_eq!(s.record(behind.id).await.dedupe_slot, 0);
    assert_eq!(s.take().await.id, behind.id);
}

pub async fn a_cancel_request_does_not_outlive_its_replay(s: &Subject) {
    let job = s.job();
    let run = s.running(&job).await;
    s.cancel(job.id).await;
    s.settle(&[retry(&run, SECOND)]).await;
    assert_eq!(s.record(job.id).await.state, JobState::Cancelled);

    waits_again(s, &job).await;

    let again = s.take().await;
    assert!(!again.cancel_requested);
    s.apply(retry(&again, SECOND)).await;
    assert_eq!(s.record(job.id).await.state, JobState::Queued);
}
