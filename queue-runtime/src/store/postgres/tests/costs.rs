//! What a claim costs does not depend on the jobs that it may not take, counted in pages that
//! Postgres looks at.

use std::time::Duration;

use serde_json::Value;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row};

use super::world::{World, jobs, request, run};
use crate::job::{Due, JobType, NewJob, QueueName};
use crate::store::Store;
use crate::store::postgres::claim::Asked;
use crate::store::postgres::instant::At;
use crate::store::postgres::rows::{self, Lane, column, ids, limit};
use crate::store::postgres::statements::{Sql, SqlQuery, Statements};

/// Pages that an index of a hundred times the size may cost more: its tree is higher by a level.
const GROWTH_MAX: u64 = 2;

/// Fills a store with `crowd` jobs of each kind that the claim may not take, all before the 20
/// that it may.
async fn crowded(crowd: usize) -> Option<World> {
    let world = World::new().await?;
    let changed = |change: &dyn Fn(&mut NewJob)| {
        let mut batch = jobs(crowd);
        for new in &mut batch {
            new.priority = 100;
            change(new);
        }
        batch
    };
    for batch in [
        changed(&|new| new.job_type = JobType::new("unknown").unwrap()),
        changed(&|new| new.job_type = JobType::new("a").unwrap()),
        changed(&|new| new.payload_schema = 2),
        changed(&|new| new.queue = QueueName::new("another").unwrap()),
        changed(&|new| new.due = Due::After(Duration::from_hours(1))),
        jobs(20),
    ] {
        world.store.insert(&batch).await.unwrap();
    }
    world.run("vacuum (analyze) {q}.jobs").await;
    Some(world)
}

/// Carries a statement out as our own connections do, undoes it, and counts the pages.
async fn pages(conn: &mut PgConnection, sql: &Sql, bind: impl Fn(SqlQuery) -> SqlQuery) -> u64 {
    let explain = format!("explain (analyze, buffers, format json) {}", sql.text());
    let mut counted = 0;
    // The first time also reads the catalogue, and leaves hints on the pages.
    for _ in 0..3 {
        let mut tx = conn.begin().await.unwrap();
        let query = bind(sqlx::query(AssertSqlSafe(explain.clone())));
        let row = query.fetch_one(&mut *tx).await.unwrap();
        let text = row.try_get_unchecked::<String, _>(0).unwrap();
        let plan: Value = serde_json::from_str(&text).unwrap();
        let blocks = |key: &str| plan[0]["Plan"][key].as_u64().unwrap();
        counted = blocks("Shared Hit Blocks") + blocks("Shared Read Blocks");
        tx.rollback().await.unwrap();
    }
    counted
}

/// The pages of finding the lanes, of taking 10 jobs from them, and of asking when one is due.
async fn cost(world: &World) -> [u64; 3] {
    let statements = Statements::new(&world.schema, false);
    let options = world.ground.options(&world.schema).connect_options();
    let mut conn = options.connect().await.unwrap();
    let asked = Asked::new(&request(10));
    let now = Some(At(crate::seam::Seam::now(&*world.hand)));
    let ask = |query: SqlQuery| {
        query
            .bind(asked.queues.clone())
            .bind(asked.job_types.clone())
            .bind(asked.schemas.clone())
    };
    let find = |query: SqlQuery| ask(query).bind(now);
    let lanes = find(statements.lanes.query()).fetch_all(&mut conn).await;
    let lanes = lanes.unwrap();
    let lanes: Vec<Lane> = lanes.iter().map(|row| rows::lane(row).unwrap()).collect();
    let take = |query: SqlQuery| {
        query
            .bind(column(&lanes, |_| 0_i64))
            .bind(column(&lanes, |lane| lane.queue.clone()))
            .bind(column(&lanes, |lane| lane.job_type.clone()))
            .bind(column(&lanes, |lane| lane.payload_schema))
            .bind(column(&lanes, |lane| lane.crashes))
            .bind(column(&lanes, |lane| lane.priority))
            .bind(column(&lanes, |lane| At(lane.run_at)))
            .bind(ids(lanes.iter().map(|lane| lane.id)))
            .bind(limit(10))
            .bind(0_i64)
            .bind(i64::from(u32::MAX))
            .bind(limit(usize::MAX))
            .bind("w1")
            .bind(60_000_i64)
            .bind(now)
    };
    let due = |query: SqlQuery| ask(query).bind(3_i64).bind(1_i64).bind(now);
    run(&mut conn, "set plan_cache_mode = force_generic_plan").await;
    [
        pages(&mut conn, &statements.lanes, find).await,
        pages(&mut conn, &statements.claim, take).await,
        pages(&mut conn, &statements.next_due, due).await,
    ]
}

fn assert_alike(few: [u64; 3], many: [u64; 3]) {
    println!("pages with few: {few:?}, with many: {many:?}");
    for (few, many) in std::iter::zip(few, many) {
        // Each look into an index goes through one more level of it.
        assert!(many <= few * GROWTH_MAX, "{few} pages became {many}");
    }
}

#[tokio::test]
async fn a_crowd_that_may_not_be_taken_costs_a_claim_nothing() {
    let (Some(few), Some(many)) = (crowded(30).await, crowded(3_000).await) else {
        return;
    };

    assert_alike(cost(&few).await, cost(&many).await);

    assert_eq!(many.claim(50).await.len(), 20);
    many.end().await;
    few.end().await;
}

#[tokio::test]
async fn a_claim_reads_no_more_of_a_long_lane_than_it_takes() {
    let waiting = async |count: usize| {
        let world = World::new().await?;
        world.store.insert(&jobs(count)).await.unwrap();
        world.run("vacuum (analyze) {q}.jobs").await;
        Some(world)
    };
    let (Some(few), Some(many)) = (waiting(50).await, waiting(5_000).await) else {
        return;
    };

    assert_alike(cost(&few).await, cost(&many).await);

    many.end().await;
    few.end().await;
}
