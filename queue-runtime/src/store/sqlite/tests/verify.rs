//! Every rule that stored data can break is found broken once somebody breaks it by hand.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor};

use super::world::World;
use crate::job::{About, Invariant, JobId, Verified};
use crate::store::tests::lively::{JOBS, LEASE, Lively, difference, lively};
use crate::store::{Admin, Store};

const EVERYTHING: usize = 100;

/// Takes the rules of the tables away for one connection.
const UNGUARD: &str = "pragma ignore_check_constraints = on";

/// An id that no job has.
const NOBODY: &str = "0193b5a0-7c3e-7000-8000-000000000000";

async fn world() -> (World, Lively) {
    let world = World::new().await;
    let lively = lively(&*world.store, || world.job()).await;
    (world, lively)
}

async fn plant(world: &World, sql: &str) {
    let mut conn = world.connection().await;
    conn.execute(UNGUARD).await.unwrap();
    let planted = conn.execute(AssertSqlSafe(sql.to_owned())).await;
    planted.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn verify(world: &World) -> Verified {
    world.store.verify(EVERYTHING).await.unwrap()
}

/// What is done by hand, and what is then found of each rule.
type Planted = (String, Vec<(Invariant, &'static str)>);

fn live(id: JobId, change: &str) -> String {
    format!("update queue_jobs set {change} where id = '{id}'")
}

fn finished(id: JobId, change: &str) -> String {
    format!("update queue_finished_jobs set {change} where id = '{id}'")
}

fn rows(l: &Lively) -> Vec<Planted> {
    use Invariant::{Attempts, Crashes, Lease, NewestAttempt, OneTable, Readable, Snoozes, State};
    let twice = format!(
        "create temp table moved as select * from queue_jobs where id = '{}';
         update moved set seq = seq + 1000, status = 'cancelled', finished_at = 5;
         insert into queue_finished_jobs select * from moved",
        l.queued
    );
    vec![
        (
            live(l.queued, "max_attempts = -1"),
            vec![(Readable, "stored max_attempts \"-1\"")],
        ),
        (
            live(l.queued, "payload = cast(x'ff' as text)"),
            vec![(Readable, "stored payload")],
        ),
        (
            live(l.queued, "status = 'sleeping'"),
            vec![(Readable, "stored status \"sleeping\"")],
        ),
        (
            live(l.queued, "id = 'no id'"),
            vec![(Readable, "job with the id \"no id\": stored id")],
        ),
        (
            finished(l.done.id, "attempts = -1"),
            vec![(Readable, "stored attempts")],
        ),
        (
            format!(
                "update queue_attempts set worker = '' where token = {}",
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
            live(l.queued, "finished_at = 5"),
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
            live(l.queued, "locked_until = 5"),
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
                (Invariant::NewestToken, "it has no token"),
                (Invariant::OpenAttempt, "is open"),
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
            vec![
                (NewestAttempt, "it is done, and was never started"),
                (
                    Invariant::NewestToken,
                    "it has no token, and its history has",
                ),
            ],
        ),
    ]
}

fn histories(l: &Lively) -> Vec<Planted> {
    use Invariant::{
        AttemptJob, AttemptOrder, Attempts, NewestAttempt, NewestToken, OpenAttempt, TokenCounter,
        TokenOnce,
    };
    let attempt =
        |token, change: &str| format!("update queue_attempts set {change} where token = {token}");
    vec![
        (
            attempt(l.tried[1], "number = 7"),
            vec![(AttemptOrder, "attempt 7 of token")],
        ),
        (
            format!("delete from queue_finished_jobs where id = '{}'", l.done.id),
            vec![(AttemptJob, "its attempt is stored, and its job is not")],
        ),
        (
            format!("delete from queue_attempts where token = {}", l.done.token),
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
            attempt(l.done.token, "finished_at = null"),
            vec![(OpenAttempt, "it is done, and its attempt of token")],
        ),
        (
            attempt(l.running.token, "finished_at = 5"),
            vec![(OpenAttempt, "whose attempt has ended")],
        ),
        (
            live(l.retrying, &format!("lock_token = {}", l.running.token)),
            vec![
                (NewestAttempt, "its history has no such attempt"),
                (TokenOnce, "2 attempts have it"),
            ],
        ),
        (
            "update sqlite_sequence set seq = 2 where name = 'queue_attempts'".to_owned(),
            vec![(TokenCounter, "the store has given none above 2")],
        ),
        (
            "delete from sqlite_sequence where name = 'queue_attempts'".to_owned(),
            vec![(TokenCounter, "the store has given none")],
        ),
    ]
}

fn keys(l: &Lively) -> Vec<Planted> {
    use Invariant::{DedupeBehind, DedupeHolder, KeyEnd, KeyJob, KeyType};
    let asked = |change: &str| {
        format!("update queue_idempotency_keys set {change} where idempotency_key = 'asked'")
    };
    vec![
        (
            format!(
                "drop index queue_jobs_dedupe; {}",
                live(l.behind, "dedupe_slot = 0")
            ),
            vec![(
                DedupeHolder,
                "key \"held\" of \"mail\": live jobs that hold it: 2",
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
            live(l.running.id, "dedupe_slot = 1, dedupe_key = 'held'").replace(
                "update",
                &format!(
                    "{}; update",
                    live(l.behind, "dedupe_slot = 0, dedupe_key = null")
                ),
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
        (asked("expires_at = 5"), vec![(KeyEnd, "its job")]),
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
    let planted = |l: &Lively| [rows(l), histories(l), keys(l)].concat();
    let count = planted(&world().await.1).len();
    let mut seen = BTreeSet::new();
    let mut differences = Vec::new();
    for n in 0..count {
        let (world, l) = world().await;
        let sound = verify(&world).await;
        assert!(sound.is_sound() && sound.warnings.is_empty(), "{sound}");
        assert_eq!(sound.jobs, JOBS.0);
        let (sql, expected) = planted(&l).remove(n);
        plant(&world, &sql).await;

        let verified = verify(&world).await;

        differences.extend(difference(&verified, &sql, &expected));
        seen.extend(expected.iter().map(|(invariant, _)| *invariant));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let missed: Vec<_> = Invariant::ALL
        .into_iter()
        .filter(|invariant| !seen.contains(invariant) && !invariant.is_warning())
        .collect();
    assert_eq!(missed, [], "rules that nothing here breaks");
}

#[tokio::test]
async fn a_lease_that_nobody_takes_back_is_a_warning() {
    let (world, l) = world().await;
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
    assert!(
        verified.to_string().contains("\nwarning: rescue: job "),
        "{verified}"
    );
}

#[tokio::test]
async fn more_than_is_listed_is_told_of() {
    let (world, _) = world().await;
    plant(&world, "update queue_jobs set priority = 40000").await;

    for (limit, listed, more) in [(0, 0, true), (3, 3, true), (JOBS.1, JOBS.1, false)] {
        let verified = world.store.verify(limit).await.unwrap();
        assert_eq!(verified.violations.len(), listed);
        assert_eq!(
            verified.more.contains(&Invariant::Readable),
            more,
            "{verified}"
        );
        assert_eq!((verified.is_sound(), verified.jobs), (false, JOBS.0));
    }
}

#[tokio::test]
async fn a_writer_that_holds_the_file_holds_up_no_look() {
    let (world, l) = world().await;
    let mut conn = world.connection().await;
    conn.execute("begin immediate").await.unwrap();
    let sql = live(l.queued, "max_attempts = -1");
    conn.execute(AssertSqlSafe(sql)).await.unwrap();

    let verified = verify(&world).await;

    assert!(verified.is_sound(), "{verified}");
    conn.execute("commit").await.unwrap();
    assert!(!verify(&world).await.is_sound());
}

#[tokio::test]
async fn a_closed_store_is_not_looked_through() {
    let (world, _) = world().await;
    world.store.close().await;
    let error = world.store.verify(EVERYTHING).await.unwrap_err();
    assert_eq!(
        error.kind(),
        crate::error::StoreErrorKind::Closed,
        "{error}"
    );
}
