//! What happens between two statements of different transactions: signals that nobody may lose,
//! keys that may not stay for ever, and jobs that may not be stored twice.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::world::{World, done, job, jobs, keyed, options_of, request, run};
use crate::job::{
    Dedupe, DedupeUntil, Due, Fingerprint, Idempotency, JobState, NewJob, OnDuplicate, Settled,
};
use crate::store::postgres::PostgresStore;
use crate::store::{Admin, Inserted, Store};

fn rerun(key: &str) -> NewJob {
    let dedupe = Dedupe {
        key: key.to_owned(),
        until: DedupeUntil::Finished,
        on_duplicate: OnDuplicate::Rerun,
    };
    NewJob {
        dedupe: Some(dedupe),
        ..job()
    }
}

/// The server's number of a connection.
async fn pid(conn: &mut PgConnection) -> i32 {
    let pid = sqlx::query_scalar("select pg_backend_pid()");
    pid.fetch_one(conn).await.expect("it answers")
}

/// Waits until somebody waits for a connection's transaction.
async fn until_somebody_waits(world: &World, holder: i32) {
    let blocked =
        "select exists (select 1 from pg_stat_activity where $1 = any (pg_blocking_pids(pid)))";
    let mut conn = world.connection().await;
    loop {
        let is_blocked: bool = sqlx::query_scalar(blocked)
            .bind(holder)
            .fetch_one(&mut conn)
            .await
            .expect("it answers");
        if is_blocked {
            return;
        }
    }
}

/// The writes that go with an open transaction's `rerun` are not visible yet, so a run that begins
/// now would miss them.
#[tokio::test]
async fn a_waiting_job_that_answers_for_a_rerun_is_not_run_before_the_commit() {
    let Some(world) = World::new().await else {
        return;
    };
    let first = rerun("user:42");
    world.add(&first).await;
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let answers = world.store.insert_in(&mut tx, &[rerun("user:42")]).await;
    let answer = answers.expect("answered").remove(0);
    assert!(matches!(answer, Inserted::Duplicate { existing, .. } if existing == first.id));

    assert_eq!(world.claim(9).await, [], "its run would not see the writes");
    tx.commit().await.expect("committed");
    assert_eq!(world.claim(9).await.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_job_behind_that_answers_for_a_rerun_is_not_run_before_the_commit() {
    let Some(world) = World::new().await else {
        return;
    };
    world.add(&rerun("user:42")).await;
    let first = world.claim(1).await.remove(0);
    world.add(&rerun("user:42")).await;
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let answers = world.store.insert_in(&mut tx, &[rerun("user:42")]).await;
    assert!(matches!(
        answers.expect("answered")[..],
        [Inserted::Duplicate { .. }]
    ));

    let ended = world.store.settle(&[done(&first)]).await;
    assert_eq!(ended.expect("settled"), [Settled::Applied(JobState::Done)]);
    assert_eq!(world.claim(9).await, [], "its run would not see the writes");
    tx.commit().await.expect("committed");
    assert_eq!(world.claim(9).await.len(), 1);
    world.end().await;
}

/// Otherwise a request with the key would be answered with an old job for ever.
#[tokio::test]
async fn a_key_bound_to_a_job_that_ends_meanwhile_runs_out() {
    let Some(world) = World::new().await else {
        return;
    };
    let asked = || {
        let new = keyed("user:42");
        NewJob {
            idempotency: Some(Idempotency {
                key: "request 7".to_owned(),
                fingerprint: Fingerprint::from_stored("{}"),
                window: Duration::from_mins(1),
            }),
            ..new
        }
    };
    world.add(&keyed("user:42")).await;
    let running = world.claim(1).await.remove(0);
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let answers = world.store.insert_in(&mut tx, &[asked()]).await;
    assert!(matches!(
        answers.expect("answered")[..],
        [Inserted::Duplicate { .. }]
    ));

    let ended = world.store.settle(&[done(&running)]).await;
    assert_eq!(ended.expect("settled"), [Settled::Applied(JobState::Done)]);
    tx.commit().await.expect("committed");
    let again = world.store.insert(&[asked()]).await.expect("answered");
    assert!(
        matches!(again[..], [Inserted::Duplicate { .. }]),
        "{again:?}"
    );
    world.hand.advance(Duration::from_mins(2));
    let later = asked();
    let answer = world.store.insert(std::slice::from_ref(&later)).await;
    assert_eq!(answer.expect("answered"), [Inserted::New { id: later.id }]);
    world.end().await;
}

#[tokio::test]
async fn a_repeat_that_waits_for_the_end_of_its_job_does_not_store_it_again() {
    let Some(world) = World::new().await else {
        return;
    };
    for new in [job(), keyed("user:42")] {
        world.add(&new).await;
        let running = world.claim(1).await.remove(0);
        let mut one = world.connection().await;
        let holder = pid(&mut one).await;
        let mut tx = one.begin().await.expect("a transaction");
        let completed = world.store.complete_in(&mut tx, &done(&running)).await;
        completed.expect("the lease holds");
        let repeated = [new.clone()];
        let mut repeats = Box::pin(world.store.insert(&repeated));
        let waited = tokio::select! {
            answer = &mut repeats => Some(answer),
            () = until_somebody_waits(&world, holder) => None,
        };
        tx.commit().await.expect("committed");
        let answer = match waited {
            Some(answer) => answer,
            None => repeats.await,
        };
        assert_eq!(answer.expect("answered"), [Inserted::New { id: new.id }]);
        assert_eq!(world.claim(9).await, [], "it has ended");
    }
    world.end().await;
}

/// A connection that goes back to its pool with a transaction of ours would swallow what its next
/// user writes.
#[tokio::test]
async fn an_enqueue_on_a_bare_connection_that_is_given_up_leaves_no_transaction_open() {
    let Some(world) = World::new().await else {
        return;
    };
    world.run("create table {q}.orders (id int)").await;
    let mut one = world.connection().await;
    let number = pid(&mut one).await;
    let mut holder = one.begin().await.expect("a transaction");
    world
        .store
        .insert_in(&mut holder, &[keyed("k")])
        .await
        .expect("the first");
    let options = PgPoolOptions::new().max_connections(1);
    let pool = options.connect_lazy_with(world.ground.connect.clone());
    let mut conn = pool.acquire().await.expect("the server takes one more");
    let second = [keyed("k")];
    tokio::select! {
        answer = world.store.insert_in(&mut conn, &second) => panic!("{answer:?}"),
        () = until_somebody_waits(&world, number) => {}
    }
    holder.rollback().await.expect("rolled back");
    drop(conn);

    let mut conn = pool.acquire().await.expect("it is free again");
    run(&mut conn, &world.sql("insert into {q}.orders values (7)")).await;
    let count = world.sql("select count(*) from {q}.orders");
    let orders: i64 = sqlx::query_scalar(AssertSqlSafe(count))
        .fetch_one(&mut world.connection().await)
        .await
        .expect("counted");
    assert_eq!(orders, 1, "what was written afterwards is there");
    assert_eq!(world.store.counts().await.expect("counted").queued, 0);
    drop(conn);
    pool.close().await;
    world.end().await;
}

/// Many handlers that keep their rows locked beyond their leases are left alone, one by one.
#[tokio::test]
async fn jobs_that_somebody_holds_do_not_hide_the_other_expired_ones() {
    let Some(world) = World::new().await else {
        return;
    };
    world.store.insert(&jobs(4)).await.expect("stored");
    let held = world.claim(3).await;
    world.hand.advance(Duration::from_secs(1));
    let crashed = world.claim(1).await.remove(0);
    let mut conn = world.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    for held in &held {
        let fenced = world.store.fence_in(&mut tx, held.lease()).await;
        fenced.expect("the lease holds");
    }
    world.hand.advance(Duration::from_mins(2));
    let expired = world.store.expired(3).await.expect("listed");
    assert!(
        expired.iter().any(|job| job.id == crashed.id),
        "{expired:?}"
    );
    tx.rollback().await.expect("rolled back");
    world.end().await;
}

#[tokio::test]
async fn jobs_that_are_not_due_hide_no_due_job_however_many_lanes_they_stand_in() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut ask = request(9);
    let mut later = Vec::new();
    for number in 0..12 {
        let job_type = crate::job::JobType::new(format!("mail{number:02}")).expect("a name");
        ask.job_types.push((job_type.clone(), 1));
        later.extend(
            jobs(201)
                .into_iter()
                .zip(-100..)
                .map(|(new, priority)| NewJob {
                    job_type: job_type.clone(),
                    priority,
                    due: Due::After(Duration::from_hours(24)),
                    ..new
                }),
        );
    }
    let due = NewJob {
        job_type: ask.job_types[12].0.clone(),
        priority: 100,
        ..job()
    };
    world.store.insert(&later).await.expect("stored");
    world.add(&due).await;
    let claimed = world.store.claim(&ask).await.expect("claimed");
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].id, due.id);
    world.end().await;
}

#[tokio::test]
async fn the_highest_priority_runs_first_however_many_lanes_wait() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut ask = request(1);
    let mut all = Vec::new();
    for number in 0..12 {
        let job_type = crate::job::JobType::new(format!("mail{number:02}")).expect("a name");
        ask.job_types.push((job_type.clone(), 1));
        all.extend(
            jobs(200)
                .into_iter()
                .zip(-100..)
                .map(|(new, priority)| NewJob {
                    job_type: job_type.clone(),
                    priority,
                    ..new
                }),
        );
    }
    let urgent = NewJob {
        job_type: ask.job_types[12].0.clone(),
        priority: 100,
        ..job()
    };
    world.store.insert(&all).await.expect("stored");
    world.add(&urgent).await;
    let claimed = world.store.claim(&ask).await.expect("claimed");
    assert_eq!(claimed[0].id, urgent.id);
    world.end().await;
}

/// A claim looks before it locks. In between another worker may have run the job and sent it back
/// to wait, or a newcomer may have replaced it: a policy that waits for a lock stands there.
#[tokio::test]
async fn a_job_that_was_put_off_between_look_and_lock_is_not_claimed_early() {
    let Some(mut world) = World::new().await else {
        return;
    };
    let (role, connect) = world.ground.role().await;
    for sql in [
        "grant usage on schema {q} to {role}",
        "grant select, insert, update, delete on all tables in schema {q} to {role}",
        "grant usage on sequence {q}.lease_tokens to {role}",
        "create table {q}.gate (id int)",
        "create function {q}.pass() returns boolean language plpgsql volatile security definer as \
           $$ begin perform pg_advisory_xact_lock_shared(hashtext('{q}')); return true; end $$",
        "alter table {q}.jobs enable row level security",
        "create policy gate on {q}.jobs to {role} using ({q}.pass()) with check (true)",
    ] {
        world.run(&sql.replace("{role}", &role)).await;
    }
    for change in ["run_at = run_at + interval '1 hour'", "payload_schema = 2"] {
        world.store.insert(&jobs(2)).await.expect("stored");
        let options = options_of(&connect, &world.schema).clock(Arc::clone(&world.hand) as _);
        let store = PostgresStore::open(options).await.expect("opened");
        // A claim that is filled remembers the lanes, so the next one only chooses and locks.
        store.claim(&request(1)).await.expect("claimed").remove(0);
        let mut gate = world.connection().await;
        let holder = pid(&mut gate).await;
        let close = world.sql("select pg_advisory_lock(hashtext('{q}'))");
        run(&mut gate, &close).await;
        let ask = request(1);
        let mut claims = Box::pin(store.claim(&ask));
        tokio::select! {
            answer = &mut claims => panic!("{answer:?}"),
            () = until_somebody_waits(&world, holder) => {}
        }
        let put_off = format!("update {{q}}.jobs set {change} where status = 'queued'");
        world.run(&put_off).await;
        let open = world.sql("select pg_advisory_unlock(hashtext('{q}'))");
        run(&mut gate, &open).await;
        assert_eq!(claims.await.expect("claimed"), [], "{change}");
        world.run("delete from {q}.jobs").await;
        store.close().await;
    }
    world.end().await;
}
