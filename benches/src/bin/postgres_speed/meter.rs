//! Processor time of the server's processes and of our own, as the kernel counts it.
//!
//! It scatters less than rates do on a machine that others use as well.

use std::fs;

use anyhow::Result;
use sqlx::postgres::PgConnection;

/// How the kernel counts processor time (`getconf CLK_TCK`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time that the server's processes for connections of this name have used;
/// zero if the server runs on another machine.
pub(crate) async fn server(conn: &mut PgConnection, application: &str) -> Result<f64> {
    let pids: Vec<i32> =
        sqlx::query_scalar("select pid from pg_stat_activity where application_name = $1")
            .bind(application)
            .fetch_all(conn)
            .await?;
    Ok(pids.iter().map(|pid| seconds(&pid.to_string())).sum())
}

/// Seconds of processor time that this program has used.
pub(crate) fn own() -> f64 {
    seconds("self")
}

fn seconds(process: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in brackets may hold blanks; fields are counted from behind it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / TICKS_PER_SECOND
}
