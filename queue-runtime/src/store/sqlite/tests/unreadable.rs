//! Rows that this library cannot read: changed by hand, or written by a newer library.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor, Row};

use super::world::{World, done};
use crate::error::StoreErrorKind;
use crate::job::{
    CacheKey, Claimed, Dedupe, DedupeUntil, Idempotency, JobId, JobState, NewJob, OnDuplicate,
};
use crate::rules::dedupe::fingerprint;
use crate::store::{Admin, Counts, Edit, Inserted, Replaying, Store, Waiting};

/// Changes stored jobs by hand.
async fn set(world: &World, id: JobId, change: &str) {
    let sql = format!("update queue_jobs set {change} where id = '{id}'");
    let mut conn = world.connection().await;
    conn.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// Reads the one dead letter that was set aside.
async fn set_aside(world: &World) -> (String, String, String) {
    let mut conn = world.connection().await;
    let sql = "select id, dead_reason, last_error from queue_finished_jobs \
               where status = 'dead_letter'";
    let row = sqlx::query(sql).fetch_one(&mut conn).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

fn ids(claimed: &[Claimed]) -> Vec<JobId> {
    claimed.iter().map(|run| run.id).collect()
}

#[tokio::test]
async fn one_row_that_cannot_be_read_keeps_every_worker_from_the_others() {
    let changes = [
        (
            "cache_key = 'k', cache_version = -1",
            "stored cache_version \"-1\"",
        ),
        ("max_attempts = -1", "stored max_attempts \"-1\""),
        ("attempts = 5000000000", "stored attempts \"5000000000\""),
        ("snoozes = -7", "stored snoozes"),
        ("generation = -7", "stored generation"),
        ("crashes = -7", "stored crashes"),
        ("payload = cast(x'ff' as text)", "stored payload"),
        (
            "trace_context = cast(x'ff' as text)",
            "stored trace_context",
        ),
        (
            "idempotency_key = cast(x'ff' as text)",
            "stored idempotency_key",
        ),
        ("payload_schema = -1", "stored payload_schema"),
    ];
    for (change, words) in changes {
        let world = World::new().await;
        let (bad, good) = (world.job(), world.job());
        world
            .store
            .insert(&[bad.clone(), good.clone()])
            .await
            .unwrap();
        set(&world, bad.id, change).await;

        let claimed = world.claim(1).await;

        assert_eq!(ids(&claimed), [good.id], "another is taken in its place");
        let (id, reason, error) = set_aside(&world).await;
        assert_eq!((id, reason.as_str()), (bad.id.to_string(), "undecodable"));
        assert!(error.starts_with(words), "{change}: {error}");
        world.store.settle(&[done(&claimed[0])]).await.unwrap();
        let counts = world.store.counts().await.unwrap();
        assert_eq!((counts.done, counts.dead_letter, counts.total()), (1, 1, 2));
    }
}

#[tokio::test]
async fn a_job_without_an_id_that_can_be_read_is_set_aside_too() {
    for id in ["'no id'", "cast(x'ff00' as text)", "''"] {
        let world = World::new().await;
        let (bad, good) = (world.job(), world.job());
        world
            .store
            .insert(&[bad.clone(), good.clone()])
            .await
            .unwrap();
        set(&world, bad.id, &format!("id = {id}")).await;

        let mut claimed = world.claim(5).await;
        claimed.extend(world.claim(5).await);

        assert_eq!(ids(&claimed), [good.id]);
        assert_eq!(world.store.counts().await.unwrap().dead_letter, 1);
        let listed = world.store.finished(JobState::DeadLetter, None, 5).await;
        assert_eq!(listed.unwrap(), []);
    }
}

#[tokio::test]
async fn a_crowd_of_unreadable_rows_is_never_got_past() {
    let world = World::new().await;
    let jobs: Vec<_> = (0..30).map(|_| world.job()).collect();
    world.store.insert(&jobs).await.unwrap();
    let mut conn = world.connection().await;
    let last = jobs[29].id;
    let sql = format!("update queue_jobs set max_attempts = -1 where id <> '{last}'");
    conn.execute(AssertSqlSafe(sql)).await.unwrap();

    let mut claims = Vec::new();
    while claims.len() < 20 && !claims.contains(&1) {
        claims.push(world.claim(2).await.len());
    }

    assert_eq!(claims, [0, 0, 0, 1], "each claim sets a few aside");
    let expected = Counts {
        processing: 1,
        dead_letter: 29,
        ..Counts::default()
    };
    assert_eq!(world.store.counts().await.unwrap(), expected);
}

#[tokio::test]
async fn a_running_job_that_cannot_be_read_keeps_every_rescue_from_the_others() {
    let world = World::new().await;
    let (bad, good) = (world.job(), world.job());
    world
        .store
        .insert(&[bad.clone(), good.clone()])
        .await
        .unwrap();
    let claimed = world.claim(2).await;
    set(&world, bad.id, "locked_by = 'no worker'").await;
    world.hand.advance(Duration::from_mins(2));

    let expired = world.store.expired(10).await.unwrap();

    assert_eq!(
        expired.iter().map(|job| job.id).collect::<Vec<_>>(),
        [good.id]
    );
    let (id, _, error) = set_aside(&world).await;
    assert_eq!(id, bad.id.to_string());
    assert!(
        error.starts_with("stored locked_by \"no worker\""),
        "{error}"
    );
    let history = world.store.attempts(bad.id).await.unwrap();
    assert_eq!(history.len(), 1);
    assert_eq!(
        history[0].outcome,
        Some(crate::job::OutcomeKind::Undecodable)
    );
    assert_eq!(history[0].error.as_deref(), Some(error.as_str()));
    let late = world.store.settle(&[done(&claimed[0])]).await.unwrap();
    assert_eq!(late, [crate::job::Settled::Stale]);
}

#[tokio::test]
async fn a_new_word_in_last_outcome_kills_every_old_worker() {
    let world = World::new().await;
    let job = world.job();
    world
        .store
        .insert(std::slice::from_ref(&job))
        .await
        .unwrap();
    let run = world.claim(1).await.remove(0);
    set(
        &world,
        job.id,
        "last_outcome = 'newer', dead_reason = 'newer'",
    )
    .await;
    let mut conn = world.connection().await;
    conn.execute("update queue_attempts set outcome = 'newer'")
        .await
        .unwrap();
    world.hand.advance(Duration::from_mins(2));

    let expired = world.store.expired(10).await.unwrap();

    assert_eq!((expired.len(), expired[0].last_outcome), (1, None));
    let record = world.store.job(job.id).await.unwrap().unwrap();
    assert_eq!((record.last_outcome, record.dead_reason), (None, None));
    assert_eq!(world.store.attempts(job.id).await.unwrap()[0].outcome, None);
    world.store.settle(&[done(&run)]).await.unwrap();
    conn.execute("update queue_finished_jobs set last_outcome = 'newer'")
        .await
        .unwrap();
    let listed = world.store.finished(JobState::Done, None, 9).await.unwrap();
    assert_eq!((listed.len(), listed[0].last_outcome), (1, None));
}

#[tokio::test]
async fn an_unreadable_final_job_hides_the_others_of_its_page() {
    let world = World::new().await;
    let jobs: Vec<_> = (0..9).map(|_| world.job()).collect();
    world.store.insert(&jobs).await.unwrap();
    for run in world.claim(9).await {
        world.store.settle(&[done(&run)]).await.unwrap();
    }
    let bad = jobs[4].id;
    let mut conn = world.connection().await;
    let sql = format!("update queue_finished_jobs set attempts = -1 where id >= '{bad}'");
    conn.execute(AssertSqlSafe(sql)).await.unwrap();

    let listed = world.store.finished(JobState::Done, None, 3).await.unwrap();

    let listed: Vec<_> = listed.iter().map(|job| job.id).collect();
    assert_eq!(listed, [jobs[3].id, jobs[2].id, jobs[1].id]);
    let error = world.store.job(bad).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("stored attempts"), "{error}");
}

#[tokio::test]
async fn a_job_that_is_set_aside_keeps_its_keys_for_ever() {
    let world = World::new().await;
    let window = Duration::from_secs(10);
    let keyed = |payload: &str| NewJob {
        payload: payload.to_owned(),
        dedupe: Some(Dedupe {
            key: "d".to_owned(),
            until: DedupeUntil::Finished,
            on_duplicate: OnDuplicate::Rerun,
        }),
        ..world.job()
    };
    let first = NewJob {
        idempotency: Some(Idempotency {
            key: "i".to_owned(),
            fingerprint: fingerprint("1"),
            window,
        }),
        cache: Some(CacheKey {
            key: "k".to_owned(),
            version: 1,
        }),
        ..keyed("1")
    };
    let behind = keyed("2");
    world
        .store
        .insert(std::slice::from_ref(&first))
        .await
        .unwrap();
    assert_eq!(world.claim(1).await.len(), 1);
    world
        .store
        .insert(std::slice::from_ref(&behind))
        .await
        .unwrap();
    set(&world, first.id, "cache_version = -1").await;
    world.hand.advance(Duration::from_mins(2));

    assert_eq!(world.store.expired(1).await.unwrap(), []);

    assert_eq!(ids(&world.claim(1).await), [behind.id], "it took the key");
    let again = NewJob {
        id: world.job().id,
        dedupe: None,
        cache: None,
        ..first.clone()
    };
    let said = world.store.insert(std::slice::from_ref(&again)).await;
    assert_eq!(
        said.unwrap(),
        [Inserted::New { id: again.id }],
        "window over"
    );
    let mut conn = world.connection().await;
    let finished: i64 = sqlx::query_scalar("select count(*) from queue_finished_jobs")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(finished, 1);
}

#[tokio::test]
async fn a_key_that_is_no_text_fails_the_settlements_of_others() {
    let world = World::new().await;
    let mut keyed = world.job();
    keyed.dedupe = Some(Dedupe {
        key: "d".to_owned(),
        until: DedupeUntil::Finished,
        on_duplicate: OnDuplicate::Keep,
    });
    world
        .store
        .insert(&[keyed.clone(), world.job()])
        .await
        .unwrap();
    let runs = world.claim(2).await;
    set(&world, keyed.id, "dedupe_key = cast(x'ff' as text)").await;

    let settlements: Vec<_> = runs.iter().map(done).collect();
    world.store.settle(&settlements).await.unwrap();

    assert_eq!(world.store.counts().await.unwrap().done, 2);
}

/// Counts as a test compares them.
fn shown(waiting: &[Waiting]) -> Vec<(&str, u32, u64)> {
    let row = |row: &Waiting| (row.payload_schema, row.queued);
    let rows = waiting.iter().map(|waiting| (waiting, row(waiting)));
    rows.map(|(waiting, (schema, queued))| (waiting.job_type.as_str(), schema, queued))
        .collect()
}

#[tokio::test]
async fn one_row_that_cannot_be_read_hides_what_else_waits() {
    let world = World::new().await;
    let jobs: Vec<_> = (0..6).map(|_| world.job()).collect();
    world.store.insert(&jobs).await.unwrap();
    set(&world, jobs[0].id, "job_type = 'No Name'").await;
    set(&world, jobs[1].id, "payload_schema = -1").await;
    set(&world, jobs[2].id, "max_attempts = -1").await;
    set(&world, jobs[3].id, "payload = cast(x'ff' as text)").await;
    let (name, queue) = (&jobs[5].job_type, &jobs[5].queue);

    let waiting = world.store.waiting().await.unwrap();
    assert_eq!(shown(&waiting), [("mail", 1, 4)]);
    let unread = world
        .store
        .unread(std::slice::from_ref(queue), &[])
        .await
        .unwrap();
    assert_eq!((unread.len(), unread[0].jobs), (1, 4));
    for count in 1..4 {
        let page = world
            .store
            .waiting_sample(name, queue, 1, None, count)
            .await;
        let page: Vec<_> = page.unwrap().iter().map(|job| job.id).collect();
        let readable = [jobs[4].id, jobs[5].id];
        assert_eq!(page, readable[..count.min(2)], "pages of {count}");
    }
}

#[tokio::test]
async fn a_payload_that_is_no_text_cannot_be_put_right() {
    let world = World::new().await;
    let job = world.job();
    world
        .store
        .insert(std::slice::from_ref(&job))
        .await
        .unwrap();
    set(&world, job.id, "payload = cast(x'ff' as text)").await;
    assert_eq!(world.claim(1).await, []);
    assert_eq!(world.store.counts().await.unwrap().dead_letter, 1);

    let edit = Edit::new(r#"{"a":1}"#, 1).unwrap();
    let replayed = world.store.replay_with(job.id, false, &edit).await;

    assert_eq!(replayed.unwrap(), Replaying::Replayed);
    assert_eq!(world.claim(1).await[0].payload, r#"{"a":1}"#);
}
