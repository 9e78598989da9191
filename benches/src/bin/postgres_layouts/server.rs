//! What the server itself says about the work it did; the processes are looked up on this machine.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use sqlx::postgres::PgConnection;

/// How the kernel counts processor time (`getconf CLK_TCK`).
const TICKS_PER_SECOND: f64 = 100.0;

/// The process that serves a connection.
pub(crate) async fn backend(conn: &mut PgConnection) -> Result<i32> {
    Ok(sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(conn)
        .await?)
}

/// Bytes of write-ahead log since the server was made.
pub(crate) async fn log_position(conn: &mut PgConnection) -> Result<f64> {
    let position = sqlx::query_scalar("select (pg_current_wal_insert_lsn() - '0/0')::float8");
    Ok(position.fetch_one(conn).await?)
}

/// Processor time of a process since it started; zero if it runs on another machine.
pub(crate) fn cpu(pid: i32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets may hold blanks; fields are counted from behind it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Duration::from_secs_f64(ticks / TICKS_PER_SECOND)
}
