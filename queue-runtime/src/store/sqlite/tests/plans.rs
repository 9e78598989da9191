//! What a claim costs does not depend on the jobs that it may not take, counted in steps of
//! SQLite's machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::world::{World, job, request};
use crate::job::{Due, NewJob, QueueName};
use crate::store::Store;
use crate::store::sqlite::claim::Asked;
use crate::store::sqlite::statements::{Sql, SqlQuery, Statements};

/// Runs a claim's look-up on a connection of its own, and returns its rows and its steps.
async fn steps(world: &World, sql: &Sql, binds_limit: bool) -> (usize, u64) {
    let asked = Asked::new(&request(20));
    let query = sql.query().bind(asked.queues).bind(asked.job_types);
    let query = if binds_limit { query.bind(20) } else { query };
    let query = query.bind(u32::MAX).bind(i64::MAX);
    let now = crate::seam::Seam::now(&*world.hand).as_millis();
    counted(world, query.bind(now)).await
}

/// Runs a query on a connection of its own, and returns its rows and its steps.
async fn counted(world: &World, query: SqlQuery) -> (usize, u64) {
    let mut conn = world.connection().await;
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let mut handle = conn.lock_handle().await.unwrap();
    handle.set_progress_handler(1, move || {
        counter.fetch_add(1, Ordering::Relaxed);
        true
    });
    drop(handle);
    let rows = query.fetch_all(&mut conn).await.unwrap();
    (rows.len(), count.load(Ordering::Relaxed))
}

/// Fills a store with `crowd` jobs of each kind that the claim may not take, all before the 20
/// that it may.
async fn crowded(crowd: usize) -> World {
    let world = World::new().await;
    let new = |change: &dyn Fn(&mut NewJob)| {
        let mut new = world.job();
        new.priority = 100;
        change(&mut new);
        new
    };
    let mut jobs = Vec::new();
    for _ in 0..crowd {
        jobs.push(job(&*world.hand, "unknown"));
        jobs.push(new(&|job| job.payload_schema = 2));
        jobs.push(new(&|job| job.due = Due::After(Duration::from_hours(1))));
        jobs.push(new(&|job| job.queue = QueueName::new("another").unwrap()));
    }
    jobs.extend((0..20).map(|_| world.job()));
    world.store.insert(&jobs).await.unwrap();
    world
}

#[tokio::test]
async fn a_crowd_that_may_not_be_taken_costs_a_claim_nothing() {
    let (few, many) = (crowded(30).await, crowded(3_000).await);
    let statements = Statements::new();
    for (sql, limit) in [(&statements.claim, true), (&statements.next_due, false)] {
        let few = steps(&few, sql, limit).await;
        let many = steps(&many, sql, limit).await;
        assert_eq!(few, many);
        assert!(many.1 < 4_000, "{} steps", many.1);
    }
    let claimed = many.claim(50).await;
    assert_eq!(claimed.len(), 20);
}

#[tokio::test]
async fn a_crowd_that_is_read_costs_a_look_for_unread_jobs_nothing() {
    let look = async |crowd: usize, known: &str| {
        let world = crowded(crowd).await;
        let sql = Statements::new().unread;
        counted(&world, sql.query().bind(known.to_owned())).await
    };
    let all = r#"[["mail",2],["unknown",1]]"#;
    let (few, many) = (look(30, all).await, look(3_000, all).await);
    assert_eq!(few, many);
    assert_eq!(few.0, 0);

    // Three kinds are not read, and of each a thousand are counted.
    let (most, more) = (look(1_100, "[]").await, look(3_000, "[]").await);
    assert_eq!(most, more);
}

#[tokio::test]
async fn a_claim_reads_no_more_of_a_long_lane_than_it_takes() {
    let cost = async |waiting: usize| {
        let world = World::new().await;
        let jobs: Vec<_> = (0..waiting).map(|_| world.job()).collect();
        world.store.insert(&jobs).await.unwrap();
        steps(&world, &Statements::new().claim, true).await
    };
    assert_eq!(cost(100).await, cost(5_000).await);
}
