//! What operators see: counts, history, final jobs, opening and closing.

use std::time::Duration;

use queue_runtime::error::StoreErrorKind;
use queue_runtime::job::{Claimed, Due, JobRecord, JobState, NewJob, OutcomeKind, Settlement};
use queue_runtime::store::{Counts, Edit, Retention};

use super::jobs::{
    LEASE, MS, SECOND, called_off, dead, done, handed_back, job_type, rerun, rescue, retry, snooze,
};
use super::subject::Subject;

pub async fn every_job_is_counted_once(s: &Subject) {
    let counts = async || s.store().counts().await.expect("counts answers");
    assert_eq!(counts().await, Counts::default());

    s.settled(&s.job(), done).await;
    s.settled(&s.job(), dead).await;
    s.settled(&s.job(), dead).await;
    s.settled(&s.job(), called_off).await;
    let keyed = || NewJob {
        dedupe: rerun("k"),
        ..s.job()
    };
    s.running(&keyed()).await;
    s.insert(&[
        keyed(),
        NewJob {
            due: Due::After(LEASE),
            ..s.job()
        },
        NewJob {
            job_type: job_type("unknown"),
            ..s.job()
        },
    ])
    .await;

    let expected = Counts {
        queued: 3,
        processing: 1,
        done: 1,
        dead_letter: 2,
        cancelled: 1,
    };
    assert_eq!(counts().await, expected);
    assert_eq!(s.picture().await.jobs().len(), 8);
}

pub async fn an_unknown_job_has_no_record_and_no_history(s: &Subject) {
    s.running(&s.job()).await;
    let unknown = s.job();
    assert_eq!(s.store().job(unknown.id).await.expect("job answers"), None);
    assert_eq!(s.attempts(unknown.id).await, []);
}

pub async fn the_history_of_a_hard_life_is_complete(s: &Subject) {
    let job = s.job();
    s.add(&job).await;
    let mut expected = Vec::new();
    type Step = (fn(&Claimed) -> Settlement, u32, OutcomeKind);
    let steps: [Step; 5] = [
        (|run| retry(run, Duration::ZERO), 1, OutcomeKind::Retry),
        (handed_back, 2, OutcomeKind::HandedBack),
        (|run| snooze(run, Duration::ZERO), 2, OutcomeKind::Snooze),
        (rescue, 2, OutcomeKind::Lost),
        (done, 3, OutcomeKind::Success),
    ];
    for (settlement, number, result) in steps {
        s.advance(SECOND);
        let run = s.take().await;
        let started_at = s.now();
        s.advance(LEASE);
        s.apply(settlement(&run)).await;
        expected.push((run.token, number, started_at, Some(s.now()), Some(result)));
    }

    let history = s.attempts(job.id).await;

    let rows: Vec<_> = history
        .into_iter()
        .map(|run| {
            (
                run.token,
                run.number,
                run.started_at,
                run.finished_at,
                run.outcome,
            )
        })
        .collect();
    assert_eq!(
        rows, expected,
        "a run that was given back shares its number with the next"
    );
}

pub async fn a_running_attempt_is_open_in_the_history(s: &Subject) {
    let run = s.running(&s.job()).await;

    let [attempt] = &s.attempts(run.id).await[..] else {
        panic!("one attempt")
    };

    assert_eq!((attempt.token, attempt.number), (run.token, 1));
    assert_eq!(
        (attempt.finished_at, attempt.outcome, &attempt.error),
        (None, None, &None)
    );
}

pub async fn histories_of_jobs_are_kept_apart(s: &Subject) {
    s.insert(&[s.job(), s.job()]).await;
    let runs = s.claim_all().await;
    s.settle(&[done(&runs[0]), dead(&runs[1])]).await;

    for (run, result) in [
        (&runs[0], OutcomeKind::Success),
        (&runs[1], OutcomeKind::Permanent),
    ] {
        let history = s.attempts(run.id).await;
        assert_eq!((history.len(), history[0].outcome), (1, Some(result)));
    }
}

pub async fn every_change_moves_the_time_of_the_last_change(s: &Subject) {
    let job = s.job();
    let moved = async |what: &str| {
        assert_eq!(s.record(job.id).await.updated_at, s.now(), "after {what}");
        s.advance(SECOND);
    };
    s.add(&job).await;
    moved("insert").await;
    let run = s.take().await;
    moved("claim").await;
    s.extend(&[run.lease()], LEASE).await;
    moved("extend").await;
    s.apply(retry(&run, Duration::ZERO)).await;
    moved("settle").await;
    let run = s.take().await;
    s.cancel(job.id).await;
    moved("a cancel request").await;
    s.settle(&[retry(&run, SECOND)]).await;
    moved("a final settle").await;
    s.replay(job.id).await;
    moved("replay").await;
    s.cancel(job.id).await;
    moved("cancel").await;
}

pub async fn the_time_is_the_stores_clock(s: &Subject) {
    for _ in 0..2 {
        assert_eq!(s.store().now().await.expect("now answers"), s.now());
        s.advance(SECOND + MS);
    }
}

pub async fn a_second_migration_changes_nothing(s: &Subject) {
    s.settled(&s.job(), done).await;
    s.running(&s.job()).await;
    let expected = s.picture().await;

    s.store().migrate().await.expect("migrate answers");

    s.shows(&expected).await;
}

pub async fn a_closed_store_says_so(s: &Subject) {
    let job = s.job();
    let run = s.running(&job).await;
    let store = s.store();

    store.close().await;

    let retention = Retention::default();
    let request = s.request();
    let edit = Edit::new("{}", 1).expect("a payload that may be stored");
    let errors = [
        ("insert", store.insert(&[s.job()]).await.err()),
        ("claim", store.claim(&request).await.err()),
        ("settle", store.settle(&[done(&run)]).await.err()),
        (
            "exchange",
            store.exchange(&[done(&run)], &request).await.err(),
        ),
        ("expired", store.expired(1).await.err()),
        ("next_due", store.next_due(&request).await.err()),
        ("job", store.job(job.id).await.err()),
        ("attempts", store.attempts(job.id).await.err()),
        ("cancel", store.cancel(job.id).await.err()),
        ("replay", store.replay(job.id, false).await.err()),
        (
            "replay_with",
            store.replay_with(job.id, false, &edit).await.err(),
        ),
        ("counts", store.counts().await.err()),
        ("unread", store.unread(&request.queues, &[]).await.err()),
        ("waiting", store.waiting().await.err()),
        (
            "waiting_sample",
            store
                .waiting_sample(&job.job_type, &job.queue, 1, None, 1)
                .await
                .err(),
        ),
        ("prune", store.prune(&retention, 1).await.err()),
        ("newest_version", store.newest_version("k").await.err()),
    ];
    for (verb, error) in errors {
        let error = error.unwrap_or_else(|| panic!("{verb} answers after the store was closed"));
        assert_eq!(error.kind(), StoreErrorKind::Closed, "{verb}: {error}");
    }
}

pub async fn a_store_can_be_closed_twice(s: &Subject) {
    s.store().close().await;
    s.store().close().await;
}

pub async fn final_jobs_are_listed_page_by_page_the_newest_end_first(s: &Subject) {
    let mut ended = Vec::new();
    for n in 0..6 {
        let run = s.running(&s.job()).await;
        s.apply(if n == 2 { done(&run) } else { dead(&run) }).await;
        ended.extend((n != 2).then_some(run.id));
        // The last three end at one time, so their ids decide.
        s.advance(if n < 3 { SECOND } else { Duration::ZERO });
    }
    ended.reverse();
    let page = async |before: Option<&JobRecord>| {
        let before = before.map(|job| (job.finished_at.expect("it is final"), job.id));
        let page = s.store().finished(JobState::DeadLetter, before, 2).await;
        page.expect("finished answers")
    };

    let mut listed = Vec::new();
    let mut last = page(None).await;
    while let Some(end) = last.last().cloned() {
        listed.append(&mut last);
        last = page(Some(&end)).await;
    }

    assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), ended);
    for job in &listed {
        assert_eq!(*job, s.record(job.id).await);
    }
}

pub async fn a_state_that_is_not_final_has_no_final_jobs(s: &Subject) {
    s.add(&s.job()).await;
    for state in [JobState::Queued, JobState::Processing] {
        let listed = s.store().finished(state, None, 9).await;
        assert_eq!(listed.expect("finished answers"), []);
    }
}
