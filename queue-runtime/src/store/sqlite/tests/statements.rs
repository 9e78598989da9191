//! Every statement is understood by a fresh database, and none walks over the jobs.

use sqlx::{AssertSqlSafe, Executor, Row, SqlSafeStr};

use super::world::World;
use crate::store::sqlite::statements::Statements;

#[tokio::test]
async fn every_statement_prepares_on_a_fresh_database() {
    let world = World::new().await;
    let mut conn = world.connection().await;
    for (name, sql) in Statements::new().all() {
        let text = AssertSqlSafe(sql.text().to_owned()).into_sql_str();
        let prepared = conn.prepare(text).await;
        prepared.unwrap_or_else(|error| panic!("{name}.sql: {error}"));
    }
}

#[test]
fn every_file_says_what_it_promises() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/sqlite/sql");
    let names: Vec<_> = Statements::new()
        .all()
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(names.contains(&name), "{name}.sql is not included");
        let text = std::fs::read_to_string(&path).unwrap();
        for label in ["-- params:", "-- returns:", "-- locks:", "-- index:"] {
            assert!(text.contains(label), "{name}.sql lacks {label}");
        }
        assert!(text.starts_with("-- ") && !text.starts_with("-- params"));
        assert!(!text.contains("select *"), "{name}.sql selects everything");
        // SQLite compiles such a statement again at every call.
        assert!(!text.contains("limit ?"), "{name}.sql has a bare limit");
        files += 1;
    }
    assert_eq!(files, names.len());
}

/// Returns what SQLite plans to do, a line per step.
async fn plan(conn: &mut sqlx::SqliteConnection, sql: &str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("explain query plan {sql}"));
    let rows = sqlx::query(explain).fetch_all(conn).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>(3)).collect()
}

#[tokio::test]
async fn only_counting_walks_over_a_table() {
    let world = World::new().await;
    let mut conn = world.connection().await;
    // These are about whole tables, and workers do not ask them.
    let whole = ["counts", "migrations_applied", "migrations_table"];
    // Nor these, which are about live jobs and dead letters.
    let live = ["waiting"];
    for (name, sql) in Statements::new().all() {
        if whole.contains(&name) || name.starts_with("verify_") {
            continue;
        }
        let plan = plan(&mut conn, sql.text()).await;
        println!("{name}:\n  {}", plan.join("\n  "));
        let walked = match live.contains(&name) {
            true => "queue_finished_jobs",
            false => "queue_",
        };
        let walks = |step: &&String| step.starts_with("SCAN") && step.contains(walked);
        assert_eq!(plan.iter().find(walks), None, "{name}.sql");
    }
}

#[tokio::test]
async fn what_waits_is_asked_of_no_final_job_but_the_dead_letters() {
    let world = World::new().await;
    let mut conn = world.connection().await;
    let statements = Statements::new();
    for sql in [&statements.waiting, &statements.waiting_sample] {
        let plan = plan(&mut conn, sql.text()).await;
        let of_final = |step: &&String| step.contains("queue_finished_jobs");
        let by_row = "SEARCH queue_finished_jobs USING INTEGER PRIMARY KEY (rowid=?)";
        for step in plan.iter().filter(of_final).filter(|step| *step != by_row) {
            let is_bound = step.contains("queue_finished_jobs_age (status=?");
            assert!(is_bound, "{}", plan.join("\n"));
        }
    }
}
