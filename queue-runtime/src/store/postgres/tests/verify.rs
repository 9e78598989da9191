//! Every rule that stored data can break is found broken once somebody breaks it by hand. The tables
//! refuse some of it, until their own rules are taken away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor};

use super::world::{World, job};
use crate::error::StoreErrorKind;
use crate::job::{About, Invariant, JobId, Verified};
use crate::seam::Seam;
use crate::store::postgres::PostgresStore;
use crate::store::tests::lively::{JOBS, LEASE, Lively, difference, lively};
use crate::store::{Admin, Store};

const EVERYTHING: usize = 100;

/// An id that no job has.
const NOBODY: &str = "0193b5a0-7c3e-7000-8000-000000000000";

const TABLES: [&str; 5] = [
    "jobs",
    "finished_jobs",
    "attempts",
    "idempotency_keys",
    "dedupe_windows",
];

async fn world() -> Option<(World, Lively)> {
    let world = World::new().await?;
    let lively = lively(&world.store, job).await;
    Some((world, lively))
}

/// Takes the rules of the tables away.
async fn unguard(world: &World) {
    let sql = "
        do $$
        declare rule record;
        begin
          for rule in
            select conrelid::regclass as of, conname as name from pg_constraint
            where connamespace = '{q}'::regnamespace and contype = 'c'
          loop
            execute format('alter table %s drop constraint %I', rule.of, rule.name);
          end loop;
        end
        $$;
        alter table {q}.attempts drop constraint attempts_pkey;
        alter table {q}.attempts alter finished_at drop not null;
        drop index {q}.jobs_dedupe";
    world.run(sql).await;
}

/// Keeps what is stored, to be there again after something was planted.
async fn keep(world: &World) {
    let keep =
        TABLES.map(|table| format!("create table {{q}}.kept_{table} as table {{q}}.{table}"));
    world.run(&keep.join("; ")).await;
}

async fn restore(world: &World, newest_token: i64) {
    let restore = TABLES.map(|table| {
        format!(
            "delete from {{q}}.{table};
             insert into {{q}}.{table} select * from {{q}}.kept_{table}"
        )
    });
    world.run(&restore.join("; ")).await;
    let counter = format!("select setval('{{q}}.lease_tokens', {newest_token})");
    world.run(&counter).await;
}

async fn verify(world: &World) -> Verified {
    let verified = world.store.verify(EVERYTHING).await;
    verified.expect("it answers")
}

/// What is done by hand, and what is then found of each rule.
type Planted = (String, Vec<(Invariant, &'static str)>);

fn live(id: JobId, change: &str) -> String {
    format!("update {{q}}.jobs set {change} where id = '{id}'")
}

fn finished(id: JobId, change: &str) -> String {
    format!("update {{q}}.finished_jobs set {change} where id = '{id}'")
}

fn rows(l: &Lively) -> Vec<Planted> {
    use Invariant::{Attempts, Crashes, Lease, NewestAttempt, OneTable, Readable, Snoozes, State};
    let twice = format!(
        "insert into {{q}}.finished_jobs
           (id, job_type, queue, payload_schema, status, priority, attempts, max_attempts, crashes,
            snoozes, generation, run_at, dedupe_slot, dedupe_until_started, created_at, updated_at,
            finished_at, payload)
         select id, job_type, queue, payload_schema, 'cancelled', priority, attempts, max_attempts,
           crashes, snoozes, generation, run_at, dedupe_slot, dedupe_until_started, created_at,
           updated_at, now(), payload
         from {{q}}.jobs where id = '{}'",
        l.queued
    );
    vec![
        (
            live(l.queued, "max_attempts = -1"),
            vec![(Readable, "stored max_attempts \"-1\"")],
        ),
        (
            live(l.queued, "queue = 'no queue'"),
            vec![(Readable, "stored queue \"no queue\"")],
        ),
        (
            live(l.queued, "status = 'sleeping'"),
            vec![(Readable, "stored status \"sleeping\"")],
        ),
        (
            finished(l.done.id, "attempts = -1"),
            vec![(Readable, "stored attempts")],
        ),
        (
            format!(
                "update {{q}}.attempts set worker = '' where token = {}",
                l.dead.token
            ),
            vec![(Readable, "stored worker \"\"")],
        ),
        (twice, vec![(OneTable, "it is live and final")]),
        (
            live(l.retrying, "status = 'dead_letter'"),
            vec![(State, "it is live and dead_letter")],
        ),
        (
            live(l.queued, "finished_at = now()"),
            vec![(State, "it is queued and became final")],
        ),
        (
            finished(l.cancelled, "status = 'queued'"),
            vec![(State, "it is final and queued")],
        ),
        (
            live(l.running.id, "locked_by = null"),
            vec![(Lease, "its lease has no worker")],
        ),
        (
            live(l.running.id, "locked_until = null"),
            vec![(Lease, "its lease has no end")],
        ),
        (
            live(l.queued, "locked_until = now()"),
            vec![(Lease, "it is queued, and has of a lease: end")],
        ),
        (
            finished(l.done.id, "locked_by = 'w1'"),
            vec![(Lease, "has of a lease: worker")],
        ),
        (
            live(l.running.id, "lock_token = null"),
            vec![
                (Lease, "its lease has no token"),
                (Attempts, "it counts 1 attempts, and its history shows 0"),
            ],
        ),
        (
            live(l.running.id, "max_attempts = 0"),
            vec![(Attempts, "with 1 attempts of 0")],
        ),
        (
            live(l.retrying, "max_attempts = 2"),
            vec![(Attempts, "is queued with 2 attempts of 2")],
        ),
        (
            live(l.retrying, "attempts = 3"),
            vec![(Attempts, "it counts 3 attempts, and its history shows 2")],
        ),
        (
            live(l.retrying, "crashes = 1"),
            vec![(Crashes, "it counts 1 crashes")],
        ),
        (
            live(l.retrying, "snoozes = 1"),
            vec![(Snoozes, "it counts 1 snoozes")],
        ),
        (
            finished(l.done.id, "lock_token = null, attempts = 0"),
            vec![(NewestAttempt, "it is done, and was never started")],
        ),
    ]
}

fn histories(l: &Lively) -> Vec<Planted> {
    use Invariant::{
        AttemptJob, AttemptOrder, Attempts, NewestAttempt, NewestToken, OpenAttempt, TokenCounter,
        TokenOnce,
    };
    let attempt =
        |token, change: &str| format!("update {{q}}.attempts set {change} where token = {token}");
    let ended = |job, token| {
        format!(
            "insert into {{q}}.attempts
               (token, job_id, number, worker, started_at, finished_at, outcome)
             values ({token}, '{job}', 1, 'w1', now(), now(), 'retry')"
        )
    };
    vec![
        (
            attempt(l.tried[1], "number = 7"),
            vec![(AttemptOrder, "attempt 7 of token")],
        ),
        (
            format!("delete from {{q}}.finished_jobs where id = '{}'", l.dead.id),
            vec![(AttemptJob, "its attempt is stored, and its job is not")],
        ),
        (
            format!("delete from {{q}}.attempts where token = {}", l.dead.token),
            vec![
                (Attempts, "it counts 1 attempts, and its history shows 0"),
                (NewestAttempt, "its history has no such attempt"),
            ],
        ),
        (
            finished(l.done.id, "done_by = null"),
            vec![
                (Attempts, "it counts 1 attempts, and its history shows 0"),
                (NewestAttempt, "its history has no such attempt"),
            ],
        ),
        (
            live(l.retrying, &format!("lock_token = {}", l.tried[0])),
            vec![(NewestToken, "and its history has")],
        ),
        (
            attempt(l.dead.token, "finished_at = null"),
            vec![(OpenAttempt, "it is dead_letter, and its attempt of token")],
        ),
        (
            ended(l.running.id, l.running.token),
            vec![
                (OpenAttempt, "whose attempt has ended"),
                (TokenOnce, "2 attempts have it"),
            ],
        ),
        (
            ended(l.dead.id, l.done.token),
            vec![(TokenOnce, "2 attempts have it")],
        ),
        (
            "select setval('{q}.lease_tokens', 2)".to_owned(),
            vec![(TokenCounter, "the store has given none above 2")],
        ),
        (
            "alter sequence {q}.lease_tokens restart".to_owned(),
            vec![(TokenCounter, "the store has given none")],
        ),
    ]
}

fn keys(l: &Lively) -> Vec<Planted> {
    use Invariant::{DedupeBehind, DedupeHolder, KeyEnd, KeyJob, KeyType};
    let asked = |change: &str| {
        format!("update {{q}}.idempotency_keys set {change} where idempotency_key = 'asked'")
    };
    vec![
        (
            live(l.behind, "dedupe_slot = 0"),
            vec![(
                DedupeHolder,
                "key \"held\" of \"mail\": live jobs that hold it: 2",
            )],
        ),
        (
            format!(
                "{}; {}",
                live(l.queued, "dedupe_slot = 1, dedupe_key = 'held'"),
                live(l.holder.id, "dedupe_slot = 0")
            ),
            vec![(
                DedupeHolder,
                "live jobs that hold it: 1, that wait behind it: 2",
            )],
        ),
        (
            live(l.holder.id, "dedupe_key = null"),
            vec![(
                DedupeBehind,
                "key \"held\" of \"mail\": a job waits behind it",
            )],
        ),
        (
            live(l.behind, "dedupe_key = null"),
            vec![(DedupeBehind, "it waits behind a dedupe key, and has none")],
        ),
        (
            format!(
                "{}; {}",
                live(l.behind, "dedupe_slot = 0, dedupe_key = null"),
                live(l.running.id, "dedupe_slot = 1, dedupe_key = 'held'")
            ),
            vec![(
                DedupeBehind,
                "it waits behind its dedupe key, and is processing",
            )],
        ),
        (
            asked(&format!("job_id = '{NOBODY}'")),
            vec![(
                KeyJob,
                "key \"asked\" of \"mail\": it does not end before its job",
            )],
        ),
        (asked("expires_at = now()"), vec![(KeyEnd, "its job")]),
        (
            live(l.asked, "job_type = 'other'"),
            vec![(KeyType, "key \"asked\" of \"mail\": its job")],
        ),
        (
            live(l.windowed, "job_type = 'other'"),
            vec![(KeyType, "key \"often\" of \"mail\": its job")],
        ),
    ]
}

#[tokio::test]
async fn whatever_is_broken_by_hand_is_found_and_named() {
    let Some((world, l)) = world().await else {
        return;
    };
    let sound = verify(&world).await;
    assert!(sound.is_sound() && sound.warnings.is_empty(), "{sound}");
    assert_eq!(sound.jobs, JOBS.0);
    unguard(&world).await;
    keep(&world).await;
    let mut seen = BTreeSet::new();
    let mut differences = Vec::new();
    for (sql, expected) in [rows(&l), histories(&l), keys(&l)].concat() {
        world.run(&sql).await;

        let verified = verify(&world).await;

        differences.extend(difference(&verified, &sql, &expected));
        seen.extend(expected.iter().map(|(invariant, _)| *invariant));
        restore(&world, l.running.token.get()).await;
        assert!(verify(&world).await.is_sound(), "as before {sql}");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let missed: Vec<_> = Invariant::ALL
        .into_iter()
        .filter(|invariant| !seen.contains(invariant) && !invariant.is_warning())
        .collect();
    assert_eq!(missed, [], "rules that nothing here breaks");
    world.end().await;
}

#[tokio::test]
async fn a_lease_that_nobody_takes_back_is_a_warning() {
    let Some((world, l)) = world().await else {
        return;
    };
    world
        .hand
        .advance(LEASE + Duration::from_mins(5) - Duration::from_millis(1));
    assert_eq!(verify(&world).await.warnings, []);

    world.hand.advance(Duration::from_millis(1));

    let verified = verify(&world).await;
    assert!(verified.is_sound());
    let warned: BTreeSet<_> = verified.warnings.iter().map(|found| &found.about).collect();
    let running = [l.holder.id, l.running.id].map(About::OneJob);
    assert_eq!(warned, running.iter().collect());
    world.end().await;
}

#[tokio::test]
async fn more_than_is_listed_is_told_of() {
    let Some((world, _)) = world().await else {
        return;
    };
    world.run("update {q}.jobs set queue = 'no queue'").await;

    for (limit, listed, more) in [(0, 0, true), (3, 3, true), (JOBS.1, JOBS.1, false)] {
        let verified = world.store.verify(limit).await.expect("it answers");
        assert_eq!(verified.violations.len(), listed);
        assert_eq!(
            verified.more.contains(&Invariant::Readable),
            more,
            "{verified}"
        );
        assert_eq!((verified.is_sound(), verified.jobs), (false, JOBS.0));
    }
    world.end().await;
}

/// It neither waits for what others hold nor sees what they have not committed.
#[tokio::test]
async fn a_transaction_that_holds_every_row_holds_up_no_look() {
    let Some((world, _)) = world().await else {
        return;
    };
    let mut conn = world.connection().await;
    let hold = "begin; update {q}.jobs set queue = 'no queue'";
    conn.execute(AssertSqlSafe(world.sql(hold)))
        .await
        .expect("held");

    let verified = verify(&world).await;

    assert!(verified.is_sound(), "{verified}");
    conn.execute("commit").await.expect("committed");
    assert!(!verify(&world).await.is_sound());
    world.end().await;
}

#[tokio::test]
async fn a_store_behind_a_pooler_can_be_looked_through() {
    let Some((world, _)) = world().await else {
        return;
    };
    let options = world.ground.options(&world.schema).behind_pooler(true);
    let options = options.clock(Arc::clone(&world.hand) as Arc<dyn Seam>);
    let pooled = PostgresStore::open(options).await.expect("it is migrated");

    let verified = pooled.verify(EVERYTHING).await.expect("it answers");

    assert_eq!((verified.is_sound(), verified.jobs), (true, JOBS.0));
    pooled.close().await;
    world.end().await;
}

/// What takes a whole table, such as a change of its columns, is waited for, but not for ever.
#[tokio::test]
async fn a_look_that_takes_too_long_is_given_up() {
    let Some((world, _)) = world().await else {
        return;
    };
    let options = world.ground.options(&world.schema);
    let hasty = options.statement_timeout(Duration::from_millis(500));
    let hasty = PostgresStore::open(hasty).await.expect("it is migrated");
    let mut conn = world.connection().await;
    let take = world.sql("begin; lock table {q}.attempts");
    conn.execute(AssertSqlSafe(take)).await.expect("taken");

    let error = hasty.verify(EVERYTHING).await.expect_err("it waits");

    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    conn.execute("rollback").await.expect("given back");
    hasty.close().await;
    world.end().await;
}
