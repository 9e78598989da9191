//! A fresh schema with the tables of one layout, full of due jobs.

use anyhow::Result;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};

use crate::statements::Layout;

/// Makes the schema anew and fills it; afterwards the planner knows the tables, and a checkpoint
/// is over, so that no run pays for the one before it.
pub(crate) async fn fresh(
    url: &str,
    layout: Layout,
    jobs: usize,
    lanes: usize,
    bytes: usize,
) -> Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    conn.execute("drop schema if exists postgres_layouts cascade")
        .await?;
    conn.execute("create schema postgres_layouts").await?;
    conn.execute(layout.tables()).await?;
    sqlx::query(layout.fill())
        .bind(i64::try_from(jobs)?)
        .bind(i64::try_from(lanes)?)
        .bind(i64::try_from(bytes)?)
        .execute(&mut conn)
        .await?;
    conn.execute("vacuum analyze").await?;
    conn.execute("checkpoint").await?;
    conn.close().await?;
    Ok(())
}

/// Leaves nothing behind.
pub(crate) async fn drop_all(url: &str) -> Result<()> {
    let mut conn = PgConnection::connect(url).await?;
    conn.execute("drop schema if exists postgres_layouts cascade")
        .await?;
    Ok(conn.close().await?)
}

/// A transaction that does nothing and keeps the server from removing what was deleted since.
pub(crate) async fn hold_snapshot(url: &str) -> Result<PgConnection> {
    let mut conn = PgConnection::connect(url).await?;
    conn.execute("begin isolation level repeatable read")
        .await?;
    conn.execute("select count(*) from pg_class").await?;
    Ok(conn)
}
