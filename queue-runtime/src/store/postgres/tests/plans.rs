//! How Postgres carries the statements out in a database that is full: by the indexes that their
//! headers name, whatever its planner is told about their parameters.

use serde_json::Value;
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, Row};
use uuid::Uuid;

use super::statements::{HasIndexes, promised};
use super::world::{World, run};
use crate::store::postgres::statements::{Sql, SqlQuery, Statements};

/// A million final jobs, and 50,500 live ones: 40 lanes and 500 leases.
const FILL: &str = "
alter table {q}.finished_jobs set unlogged;
insert into {q}.finished_jobs
  (id, job_type, queue, payload_schema, status, priority, attempts, max_attempts, crashes,
   snoozes, generation, run_at, lock_token, dedupe_slot, dedupe_until_started, created_at,
   updated_at, started_at, finished_at, payload)
select
  lpad(to_hex(n), 32, '0')::uuid, 'type' || n % 5, 'queue' || n % 4, 1,
  case when n % 10 > 0 then 'done' else 'dead_letter' end, 0, 1, 5, 0, 0, 0, now(), n, 0, false,
  now(), now(), now(), now() - n * interval '1 second', '{}'
from generate_series(1, 1000000) n;
insert into {q}.jobs
  (id, job_type, queue, payload_schema, status, priority, max_attempts, run_at, dedupe_key,
   created_at, updated_at, payload)
select
  gen_random_uuid(), 'type' || n % 5, 'queue' || n % 4, 1, 'queued', n / 20 % 2, 5,
  now() - n * interval '1 second', case when n % 2 = 0 then 'key' || n end, now(), now(), '{}'
from generate_series(1, 50000) n;
insert into {q}.jobs
  (id, job_type, queue, payload_schema, status, priority, attempts, max_attempts, run_at,
   locked_until, locked_by, lock_token, created_at, updated_at, started_at, payload)
select
  gen_random_uuid(), 'type' || n % 5, 'queue' || n % 4, 1, 'processing', 0, 1, 5, now(),
  now() + (n - 5) * interval '1 minute', 'w1', nextval('{q}.lease_tokens'), now(), now(), now(),
  '{}'
from generate_series(1, 500) n;
insert into {q}.attempts (token, job_id, number, worker, started_at, finished_at, outcome)
select -n, gen_random_uuid(), 1, 'w1', now(), now(), 'success'
from generate_series(1, 50000) n;
insert into {q}.idempotency_keys
  (job_type, idempotency_key, job_id, fingerprint, created_at, window_ms, expires_at)
select 'type1', 'key' || n, gen_random_uuid(), '', now(), 1, now() + n * interval '1 second'
from generate_series(1, 50000) n;
insert into {q}.dedupe_windows (job_type, dedupe_key, job_id, expires_at)
select 'type1', 'key' || n, gen_random_uuid(), now() + n * interval '1 second'
from generate_series(1, 50000) n;
analyze {q}.finished_jobs, {q}.jobs, {q}.attempts, {q}.idempotency_keys, {q}.dedupe_windows;
";

/// Lets the planner see that every table is empty.
const ANALYZE: &str = "
vacuum analyze {q}.finished_jobs, {q}.jobs, {q}.attempts, {q}.idempotency_keys,
  {q}.dedupe_windows, {q}.versions, {q}.meta;
";

/// These are about whole tables, and workers do not ask them; or their plans say nothing.
const APART: [&str; 4] = [
    "counts",
    "migrations_schema",
    "migrations_table",
    "migrations_record",
];

/// Whether a statement is one of those, or reads everything to see whether it keeps the rules.
fn is_apart(name: &str) -> bool {
    APART.contains(&name) || name.starts_with("verify_")
}

/// These are about live jobs and dead letters, and workers do not ask them: they may walk over all
/// live jobs, and over no final ones.
const LIVE: [&str; 2] = ["waiting", "waiting_sample"];

#[tokio::test]
async fn a_million_final_jobs_make_no_statement_walk_over_a_table() {
    let Some(world) = World::new().await else {
        return;
    };
    world.run(FILL).await;
    let indexes = world.indexes().await;
    let statements = Statements::new(&world.schema, false);
    let mut faults = Vec::new();

    // As our own connections plan: once, for whatever parameters will come.
    let options = world.ground.options(&world.schema).connect_options();
    let mut ours = options.connect().await.expect("the server answers");
    for (name, sql) in statements.all() {
        if !is_apart(name) {
            let plan = generic(&mut ours, name, sql).await;
            faults.extend(complaints("generic", name, &plan, &indexes));
        }
    }
    // As behind a pooler: anew each time, for the parameters that came.
    let options = world.ground.options(&world.schema).behind_pooler(true);
    let mut pooled = options.connect_options().connect().await.expect("it does");
    let leased = Leased::of(&world, &mut pooled).await;
    for (name, query) in asked(&statements, &leased) {
        let plan = read(&mut pooled, query).await;
        faults.extend(complaints("auto", name, &plan, &indexes));
    }

    assert_eq!(faults, [""; 0], "{}", faults.join("\n"));
    world.end().await;
}

#[tokio::test]
async fn a_plan_that_was_made_while_the_tables_were_empty_walks_over_none_of_them() {
    let Some(world) = World::new().await else {
        return;
    };
    let statements = Statements::new(&world.schema, false);
    let options = world.ground.options(&world.schema).connect_options();
    let mut faults = Vec::new();

    // As they are made, and as they are after a night without work.
    for analyze in [false, true] {
        if analyze {
            world.run(ANALYZE).await;
        }
        let mut conn = options.connect().await.expect("the server answers");
        for (name, sql) in statements.all() {
            if is_apart(name) {
                continue;
            }
            let mut nodes = Vec::new();
            let plan = generic(&mut conn, name, sql).await;
            flatten(&plan[0]["Plan"], &mut nodes);
            let walks = nodes.into_iter().filter(|node| is_walk(name, node));
            faults.extend(walks.map(|node| {
                let (kind, table) = (&node["Node Type"], &node["Relation Name"]);
                format!("{name} (analyzed: {analyze}): {kind} on {table}")
            }));
        }
    }

    assert_eq!(faults, [""; 0], "{}", faults.join("\n"));
    world.end().await;
}

/// The plan of a prepared statement for any parameters.
async fn generic(conn: &mut PgConnection, name: &str, sql: &Sql) -> Value {
    run(conn, &format!("prepare {name} as {}", sql.text())).await;
    let count = "select cardinality(parameter_types) from pg_prepared_statements where name = $1";
    let count: i32 = sqlx::query_scalar(count)
        .bind(name)
        .fetch_one(&mut *conn)
        .await
        .expect("it was prepared");
    let nulls = vec!["null"; usize::try_from(count).expect("a few")].join(", ");
    let nulls = if count == 0 {
        nulls
    } else {
        format!("({nulls})")
    };
    let explain = format!("explain (format json) execute {name} {nulls}");
    read(conn, sqlx::query(AssertSqlSafe(explain))).await
}

async fn read(conn: &mut PgConnection, query: SqlQuery) -> Value {
    let row = query.fetch_one(conn).await.expect("it can be explained");
    let text = row.try_get_unchecked::<String, _>(0).expect("text");
    // sqlx's text of a json value may begin with its version.
    serde_json::from_str(text.trim_start_matches('\u{1}')).expect("json")
}

/// Whether a part of a statement's plan reads a whole table, or all of an index, that it must not.
fn is_walk(name: &str, node: &Value) -> bool {
    const BIG: [&str; 5] = [
        "jobs",
        "finished_jobs",
        "attempts",
        "idempotency_keys",
        "dedupe_windows",
    ];
    let text = |key: &str| node[key].as_str().unwrap_or("");
    let is_of_live = text("Relation Name") == "jobs" || text("Index Name").starts_with("jobs_");
    if LIVE.contains(&name) && is_of_live {
        return false;
    }
    let is_unbound = node.get("Index Cond").is_none();
    match text("Node Type") {
        "Seq Scan" => BIG.contains(&text("Relation Name")),
        "Bitmap Index Scan" => is_unbound,
        kind if kind.starts_with("Index") => BIG.contains(&text("Relation Name")) && is_unbound,
        _ => false,
    }
}

/// What is wrong with a plan.
fn complaints(mode: &str, name: &str, plan: &Value, indexes: &[String]) -> Vec<String> {
    let mut nodes = Vec::new();
    flatten(&plan[0]["Plan"], &mut nodes);
    let text = |node: &Value, key: &str| node[key].as_str().unwrap_or("").to_owned();
    let mut faults = Vec::new();
    let mut used = Vec::new();
    for node in nodes {
        let (kind, table) = (text(node, "Node Type"), text(node, "Relation Name"));
        if is_walk(name, node) {
            faults.push(format!("{name} ({mode}): {kind} on {table}"));
        }
        used.push(text(node, "Index Name"));
        let arbiters = node["Conflict Arbiter Indexes"].as_array();
        used.extend(arbiters.into_iter().flatten().map(|index| {
            let index = index.as_str();
            index.unwrap_or("").to_owned()
        }));
    }
    for index in promised(name, indexes) {
        let is_used = match index.as_str() {
            "primary key" => used.iter().any(|used| used.ends_with("_pkey")),
            index => used.iter().any(|used| used == index),
        };
        if !is_used {
            faults.push(format!("{name} ({mode}): {index} is not used"));
        }
    }
    if !faults.is_empty() {
        println!("{name} ({mode}): {plan:#}");
    }
    faults
}

fn flatten<'p>(plan: &'p Value, nodes: &mut Vec<&'p Value>) {
    nodes.push(plan);
    for child in plan["Plans"].as_array().into_iter().flatten() {
        flatten(child, nodes);
    }
}

/// Some of the jobs that are under a lease.
struct Leased {
    ids: Vec<Uuid>,
    tokens: Vec<i64>,
}

impl Leased {
    async fn of(world: &World, conn: &mut PgConnection) -> Self {
        let sql = "select id, lock_token from {q}.jobs where locked_until is not null limit 100";
        let rows = sqlx::query(AssertSqlSafe(world.sql(sql)))
            .fetch_all(conn)
            .await
            .expect("they are there");
        let (ids, tokens) = rows
            .iter()
            .map(|row| (row.get::<Uuid, _>(0), row.get::<i64, _>(1)))
            .unzip();
        Self { ids, tokens }
    }
}

/// What workers and producers ask again and again, as they do, and what operators ask about the jobs
/// that wait.
fn asked(statements: &Statements, leased: &Leased) -> Vec<(&'static str, SqlQuery)> {
    let names = |of: &str, count: usize| (0..count).map(|n| format!("{of}{n}")).collect::<Vec<_>>();
    let lanes: Vec<(String, String, i16)> = (0..40)
        .map(|n| {
            (
                format!("queue{}", n % 4),
                format!("type{}", n % 5),
                (n / 20) as i16,
            )
        })
        .collect();
    let ours = |sql: &Sql| {
        sqlx::query(AssertSqlSafe(format!(
            "explain (format json) {}",
            sql.text()
        )))
    };
    let count = leased.ids.len();
    let now = None::<super::super::instant::At>;
    let start = super::super::instant::At(crate::time::Timestamp::EPOCH);
    let none = |count: usize| vec![None::<String>; count];
    let zeros = vec![0_i64; count];
    let lookup = |sql: &Sql| {
        ours(sql)
            .bind(names("queue", 4))
            .bind(names("type", 5))
            .bind(vec![1_i64; 5])
    };
    vec![
        ("lanes", lookup(&statements.lanes).bind(now)),
        (
            "next_due",
            lookup(&statements.next_due)
                .bind(3_i64)
                .bind(1_i64)
                .bind(now),
        ),
        (
            "claim",
            ours(&statements.claim)
                .bind(vec![0_i64; 40])
                .bind(lanes.iter().map(|lane| lane.0.clone()).collect::<Vec<_>>())
                .bind(lanes.iter().map(|lane| lane.1.clone()).collect::<Vec<_>>())
                .bind(vec![1_i64; 40])
                .bind(vec![0_i64; 40])
                .bind(lanes.iter().map(|lane| lane.2).collect::<Vec<_>>())
                .bind(vec![start; 40])
                .bind(vec![Uuid::nil(); 40])
                .bind(100_i64)
                .bind(0_i64)
                .bind(3_i64)
                .bind(1_i64)
                .bind("w1")
                .bind(60_000_i64)
                .bind(now),
        ),
        (
            "settle_done",
            ours(&statements.settle_done)
                .bind(leased.ids.clone())
                .bind(leased.tokens.clone())
                .bind(zeros.clone())
                .bind(zeros.clone())
                .bind(now),
        ),
        (
            "settle_final",
            ours(&statements.settle_final)
                .bind(leased.ids.clone())
                .bind(leased.tokens.clone())
                .bind(vec!["permanent"; count])
                .bind(none(count))
                .bind(zeros.clone())
                .bind(zeros.clone())
                .bind(zeros.clone())
                .bind(vec!["dead_letter"; count])
                .bind(none(count))
                .bind(vec![false; count])
                .bind(now),
        ),
        (
            "settle_queued",
            ours(&statements.settle_queued)
                .bind(leased.ids.clone())
                .bind(leased.tokens.clone())
                .bind(vec!["retry"; count])
                .bind(none(count))
                .bind(zeros.clone())
                .bind(zeros.clone())
                .bind(zeros.clone())
                .bind(zeros)
                .bind(now),
        ),
        (
            "settle",
            ours(&statements.settle)
                .bind(leased.ids.clone())
                .bind(leased.tokens.clone())
                .bind(now),
        ),
        (
            "settle_free",
            ours(&statements.settle_free)
                .bind(leased.ids.clone())
                .bind(leased.tokens.clone()),
        ),
        (
            "extend",
            ours(&statements.extend)
                .bind(leased.ids.clone())
                .bind(leased.tokens.clone())
                .bind(60_000_i64)
                .bind(now),
        ),
        (
            "unread",
            ours(&statements.unread)
                .bind(names("queue", 4))
                .bind(names("type", 5))
                .bind(vec![0_i64; 5]),
        ),
        (
            "waiting_sample",
            ours(&statements.waiting_sample)
                .bind("type1")
                .bind("queue1")
                .bind(1_i64)
                .bind(None::<Uuid>)
                .bind(1_000_i64),
        ),
        ("expired", ours(&statements.expired).bind(100_i64).bind(now)),
        ("find", ours(&statements.find).bind(leased.ids[0])),
        ("job", ours(&statements.job).bind(leased.ids[0])),
        (
            "insert",
            ours(&statements.insert)
                .bind(leased.ids.clone())
                .bind(vec!["type1"; count])
                .bind(vec!["queue1"; count])
                .bind(vec![1_i64; count])
                .bind(vec![0_i16; count])
                .bind(vec![5_i64; count])
                .bind(vec![None::<i64>; count])
                .bind(vec![now; count])
                .bind(vec![None::<i64>; count])
                .bind(vec![false; count])
                .bind(none(count))
                .bind(none(count))
                .bind(vec![None::<i64>; count])
                .bind(none(count))
                .bind(vec!["{}"; count])
                .bind(names("new", count))
                .bind(vec![0_i16; count])
                .bind(now),
        ),
        (
            "insert_probe",
            ours(&statements.insert_probe)
                .bind(leased.ids.clone())
                .bind(vec!["type1"; count])
                .bind(names("key", count))
                .bind(names("key", count))
                .bind(names("key", count))
                .bind(vec!["{}"; count])
                .bind(now),
        ),
    ]
}
