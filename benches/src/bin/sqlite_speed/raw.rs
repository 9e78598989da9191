//! The same disk and the same SQLite without a queue: what a hand-written loop reaches.
//!
//! For orientation only. These loops keep no leases, no history and no counters, check nothing,
//! and serve one caller.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, Executor};

/// Rows in one transaction of the batch insert.
pub(crate) const BATCH: usize = 1_000;

const PAYLOAD: &str = r#"{"user_id":42,"email":"ada.lovelace@example.org"}"#;

const TABLE: &str = "create table jobs (
    id integer primary key, payload text not null, run_at integer not null, taken integer not null
) strict";

const INSERT: &str = "insert into jobs (payload, run_at, taken) values (?1, ?2, 0)";

const TAKE: &str = "update jobs set taken = 1 where id in (
    select id from jobs where taken = 0 order by id limit ?1
) returning id, payload";

/// Inserts rows for a span, so many in each transaction; returns rows per second.
pub(crate) async fn insert(folder: &Path, batch: usize, span: Duration) -> Result<f64> {
    let mut conn = open(folder).await?;
    let (mut rows, begun) = (0, Instant::now());
    while begun.elapsed() < span {
        insert_batch(&mut conn, rows, batch).await?;
        rows += batch;
    }
    let seconds = begun.elapsed().as_secs_f64();
    conn.close().await?;
    Ok(rows as f64 / seconds)
}

/// Takes and finishes rows, so many in each transaction; returns rows per second.
pub(crate) async fn drain(folder: &Path, rows: usize, batch: usize) -> Result<f64> {
    let mut conn = open(folder).await?;
    insert_batch(&mut conn, 0, rows).await?;
    let begun = Instant::now();
    let mut taken: Vec<(i64, String)> = Vec::new();
    loop {
        let mut tx = conn.begin_with("begin immediate").await?;
        for (id, _) in &taken {
            sqlx::query("delete from jobs where id = ?1")
                .bind(id)
                .execute(&mut *tx)
                .await?;
        }
        taken = sqlx::query_as(TAKE)
            .bind(i64::try_from(batch)?)
            .fetch_all(&mut *tx)
            .await?;
        tx.commit().await?;
        if taken.is_empty() {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    conn.close().await?;
    Ok(rows as f64 / seconds)
}

async fn open(folder: &Path) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(folder.join("raw.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut conn = SqliteConnection::connect_with(&options).await?;
    conn.execute(TABLE).await?;
    conn.execute("create index waiting on jobs (id) where taken = 0")
        .await?;
    Ok(conn)
}

async fn insert_batch(conn: &mut SqliteConnection, from: usize, batch: usize) -> Result<()> {
    let mut tx = conn.begin_with("begin immediate").await?;
    for row in from..from + batch {
        sqlx::query(INSERT)
            .bind(PAYLOAD)
            .bind(i64::try_from(row)?)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(())
}
