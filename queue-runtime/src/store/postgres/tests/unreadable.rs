//! Rows that this library cannot read: changed by hand, or written by a newer library. The tables
//! refuse most of them; what they let through stops nobody.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor, Row};

use super::world::{World, done, ids, job, jobs, keyed, request};
use crate::error::StoreErrorKind;
use crate::job::{JobId, JobState, NewJob, OnDuplicate, OutcomeKind, Settled};
use crate::store::{Admin, Counts, Store};

/// Changes a stored job by hand.
async fn set(world: &World, id: JobId, change: &str) {
    let sql = format!("update {{q}}.jobs set {change} where id = '{id}'");
    world.run(&sql).await;
}

/// Takes the rules of the table away, as a newer library may that means something else by them.
async fn unguard(world: &World) {
    let sql = "
        do $$
        declare rule text;
        begin
          for rule in
            select conname from pg_constraint
            where conrelid = '{q}.jobs'::regclass and contype = 'c'
          loop
            execute format('alter table {q}.jobs drop constraint %I', rule);
          end loop;
        end
        $$";
    world.run(sql).await;
}

/// Reads the one dead letter that was set aside.
async fn set_aside(world: &World) -> (String, String, String) {
    let sql = "select id::text, dead_reason, last_error from {q}.finished_jobs \
               where status = 'dead_letter'";
    let mut conn = world.connection().await;
    let row = sqlx::query(AssertSqlSafe(world.sql(sql)))
        .fetch_one(&mut conn)
        .await
        .expect("there is one");
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test]
async fn the_tables_refuse_most_of_what_nobody_could_read() {
    let Some(world) = World::new().await else {
        return;
    };
    let waiting = job();
    world.add(&waiting).await;
    let mut conn = world.connection().await;
    for change in [
        "cache_key = 'k', cache_version = -1",
        "max_attempts = -1",
        "attempts = 5000000000",
        "snoozes = -7",
        "crashes = 4294967296",
        "generation = -7",
        "payload_schema = -1",
        "payload = null",
        "status = 'sleeping'",
        "status = 'processing'",
        "locked_by = 'w1'",
        "dedupe_slot = 2",
        "payload = convert_from('\\xff', 'utf8')",
    ] {
        let sql = format!("update {{q}}.jobs set {change}");
        let refused = conn.execute(AssertSqlSafe(world.sql(&sql))).await;
        refused.expect_err(change);
    }
    assert_eq!(ids(&world.claim(5).await), [waiting.id]);
    world.end().await;
}

#[tokio::test]
async fn one_row_that_cannot_be_read_keeps_every_worker_from_the_others() {
    for (change, words) in [
        (
            "cache_key = 'k', cache_version = -1",
            "stored cache_version \"-1\"",
        ),
        ("max_attempts = -1", "stored max_attempts \"-1\""),
        ("attempts = 5000000000", "stored attempts \"500000000"),
        ("snoozes = -7", "stored snoozes"),
        ("generation = -7", "stored generation"),
        ("crashes = -7", "stored crashes"),
        ("payload_schema = -1", "stored payload_schema"),
    ] {
        let Some(world) = World::new().await else {
            return;
        };
        let batch = jobs(2);
        world.store.insert(&batch).await.expect("stored");
        unguard(&world).await;
        set(&world, batch[0].id, change).await;

        let claimed = world.claim(1).await;

        assert_eq!(
            ids(&claimed),
            [batch[1].id],
            "another is taken in its place"
        );
        let (id, reason, error) = set_aside(&world).await;
        assert_eq!(
            (id, reason.as_str()),
            (batch[0].id.to_string(), "undecodable")
        );
        assert!(error.starts_with(words), "{change}: {error}");
        world
            .store
            .settle(&[done(&claimed[0])])
            .await
            .expect("settled");
        let counts = world.store.counts().await.expect("counted");
        assert_eq!((counts.done, counts.dead_letter, counts.total()), (1, 1, 2));
        world.end().await;
    }
}

/// Half of a cache's key is none, and the ends of time are instants like any other.
#[tokio::test]
async fn odd_rows_that_can_be_read_are_taken() {
    for change in [
        "cache_key = 'k'",
        "cache_version = 7",
        "run_at = '-infinity', created_at = '-infinity'",
        "deadline = 'infinity'",
        "payload = ''",
    ] {
        let Some(world) = World::new().await else {
            return;
        };
        let odd = job();
        world.add(&odd).await;
        set(&world, odd.id, change).await;
        assert_eq!(ids(&world.claim(5).await), [odd.id], "{change}");
        world.end().await;
    }
}

/// A claim asks for names, so a job whose name is none waits like one of an unknown type.
#[tokio::test]
async fn a_job_whose_name_is_none_waits_and_is_counted_by_nobody() {
    let Some(world) = World::new().await else {
        return;
    };
    let batch = jobs(3);
    world.store.insert(&batch).await.expect("stored");
    set(&world, batch[0].id, "job_type = 'No Name'").await;
    set(&world, batch[1].id, "queue = 'no queue'").await;

    assert_eq!(ids(&world.claim(9).await), [batch[2].id]);

    let waiting = world.store.waiting().await.expect("it answers");
    let counted: Vec<_> = waiting
        .iter()
        .map(|row| (row.queued, row.total()))
        .collect();
    assert_eq!(counted, [(0, 1)], "only the one that runs");
    let error = world
        .store
        .job(batch[0].id)
        .await
        .expect_err("it cannot be read");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(
        error.to_string().contains("stored job_type \"No Name\""),
        "{error}"
    );
    assert_eq!(world.store.counts().await.expect("counted").queued, 2);
    world.end().await;
}

#[tokio::test]
async fn a_running_job_that_cannot_be_read_keeps_every_rescue_from_the_others() {
    for (change, words) in [
        ("locked_by = 'no worker'", "stored locked_by \"no worker\""),
        ("job_type = 'No Name'", "stored job_type \"No Name\""),
        ("queue = 'no queue'", "stored queue \"no queue\""),
        ("generation = -1", "stored generation \"-1\""),
    ] {
        let Some(world) = World::new().await else {
            return;
        };
        let batch = jobs(2);
        world.store.insert(&batch).await.expect("stored");
        let claimed = world.claim(2).await;
        unguard(&world).await;
        set(&world, batch[0].id, change).await;
        world.hand.advance(Duration::from_mins(2));

        let expired = world.store.expired(10).await.expect("it answers");

        let expired: Vec<_> = expired.iter().map(|job| job.id).collect();
        assert_eq!(expired, [batch[1].id]);
        let (id, reason, error) = set_aside(&world).await;
        assert_eq!(
            (id, reason.as_str()),
            (batch[0].id.to_string(), "undecodable")
        );
        assert!(error.starts_with(words), "{change}: {error}");
        let late = world
            .store
            .settle(&[done(&claimed[0])])
            .await
            .expect("it answers");
        assert_eq!(late, [Settled::Stale]);
        if !change.starts_with("locked_by") {
            let history = world.store.attempts(batch[0].id).await.expect("it answers");
            assert_eq!(history.len(), 1);
            assert_eq!(history[0].outcome, Some(OutcomeKind::Undecodable));
            assert_eq!(history[0].error.as_deref(), Some(error.as_str()));
        }
        world.end().await;
    }
}

#[tokio::test]
async fn a_new_word_in_last_outcome_kills_every_old_worker() {
    let Some(world) = World::new().await else {
        return;
    };
    let stored = job();
    world.add(&stored).await;
    let run = world.claim(1).await.remove(0);
    set(
        &world,
        stored.id,
        "last_outcome = 'newer', dead_reason = 'newer'",
    )
    .await;
    world.hand.advance(Duration::from_mins(2));

    let expired = world.store.expired(10).await.expect("it answers");

    assert_eq!((expired.len(), expired[0].last_outcome), (1, None));
    world.store.settle(&[done(&run)]).await.expect("settled");
    world
        .run(
            "update {q}.finished_jobs set last_outcome = 'newer', dead_reason = 'newer'; \
             update {q}.attempts set outcome = 'newer'",
        )
        .await;
    let listed = world
        .store
        .finished(JobState::Done, None, 9)
        .await
        .expect("listed");
    assert_eq!((listed.len(), listed[0].last_outcome), (1, None));
    assert_eq!(listed[0].dead_reason, None);
    let history = world.store.attempts(stored.id).await.expect("it answers");
    assert_eq!((history.len(), history[0].outcome), (1, None));
    world.end().await;
}

#[tokio::test]
async fn an_unreadable_final_job_hides_the_others_of_its_page() {
    let Some(world) = World::new().await else {
        return;
    };
    let batch = jobs(9);
    world.store.insert(&batch).await.expect("stored");
    for run in world.claim(9).await {
        world.store.settle(&[done(&run)]).await.expect("settled");
    }
    let bad = batch[4].id;
    let sql = format!("update {{q}}.finished_jobs set attempts = -1 where id >= '{bad}'");
    world.run(&sql).await;

    let listed = world
        .store
        .finished(JobState::Done, None, 3)
        .await
        .expect("listed");

    let listed: Vec<_> = listed.iter().map(|job| job.id).collect();
    assert_eq!(listed, [batch[3].id, batch[2].id, batch[1].id]);
    let error = world.store.job(bad).await.expect_err("it cannot be read");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("stored attempts"), "{error}");
    world.end().await;
}

#[tokio::test]
async fn a_crowd_of_unreadable_rows_is_never_got_past() {
    let Some(world) = World::new().await else {
        return;
    };
    let batch = jobs(30);
    world.store.insert(&batch).await.expect("stored");
    let last = batch[29].id;
    unguard(&world).await;
    let sql = format!("update {{q}}.jobs set max_attempts = -1 where id <> '{last}'");
    world.run(&sql).await;

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
    assert_eq!(world.store.counts().await.expect("counted"), expected);
    world.end().await;
}

#[tokio::test]
async fn a_job_that_is_set_aside_keeps_its_dedupe_key_for_ever() {
    let Some(world) = World::new().await else {
        return;
    };
    let rerun = || {
        let mut new: NewJob = keyed("d");
        new.dedupe.as_mut().expect("it has one").on_duplicate = OnDuplicate::Rerun;
        new
    };
    let (first, behind) = (rerun(), rerun());
    world.add(&first).await;
    assert_eq!(world.claim(1).await.len(), 1);
    world.add(&behind).await;
    set(&world, first.id, "locked_by = 'no worker'").await;
    world.hand.advance(Duration::from_mins(2));

    assert_eq!(world.store.expired(1).await.expect("it answers"), []);

    let taken = world.store.claim(&request(1)).await.expect("claimed");
    assert_eq!(ids(&taken), [behind.id], "it took the key");
    world.end().await;
}

#[tokio::test]
async fn one_row_that_cannot_be_read_hides_what_else_waits() {
    let Some(world) = World::new().await else {
        return;
    };
    let batch = jobs(5);
    world.store.insert(&batch).await.expect("stored");
    set(&world, batch[0].id, "job_type = 'No Name'").await;
    set(&world, batch[1].id, "queue = 'no queue'").await;
    set(&world, batch[2].id, "queue = 'no queue'").await;
    let (name, queue) = (&batch[4].job_type, &batch[4].queue);

    let waiting = world.store.waiting().await.expect("it answers");
    let waiting: Vec<_> = waiting
        .iter()
        .map(|row| (row.job_type.as_str(), row.queued))
        .collect();
    assert_eq!(waiting, [("mail", 2)], "no worker serves the others");
    let unread = world
        .store
        .unread(std::slice::from_ref(queue), &[])
        .await
        .expect("it answers");
    assert_eq!((unread.len(), unread[0].jobs), (1, 2));
    for count in 1..4 {
        let page = world
            .store
            .waiting_sample(name, queue, 1, None, count)
            .await;
        let page: Vec<_> = page.expect("it answers").iter().map(|job| job.id).collect();
        let readable = [batch[3].id, batch[4].id];
        assert_eq!(page, readable[..count.min(2)], "pages of {count}");
    }
    world.end().await;
}
