//! Whether a statement may come to read the whole table: its generic plan in several states of it.

use anyhow::{Result, ensure};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::statements::{Form, Layout};
use crate::world;

/// Finished jobs that lie beside the live ones while plans are made.
const FINISHED: usize = 1_000_000;

/// Plans every statement of A and B; fails if one reads all jobs on a pinned connection, or in A
/// although there are many. In B the leased jobs are few then, and reading them is no mistake.
pub(crate) async fn check(url: &str) -> Result<()> {
    let mut whole = Vec::new();
    for layout in [Layout::A, Layout::B] {
        for (state, jobs) in [("many jobs", 100_000), ("no jobs", 0)] {
            world::fresh(url, layout, jobs, 40, 96).await?;
            let mut conn = PgConnection::connect(url).await?;
            if jobs > 0 {
                let fill = sqlx::query(layout.fill_finished()).bind(i64::try_from(FINISHED)?);
                fill.execute(&mut conn).await?;
                conn.execute("vacuum analyze").await?;
            }
            for pinned in [false, true] {
                for (name, statement) in statements(layout) {
                    let plan = plan(&mut conn, statement, pinned).await?;
                    let scans = plan.iter().filter(|line| reads_all_jobs(line)).count();
                    println!("{layout:?}, {state}, pinned {pinned}, {name}: {scans} whole scans");
                    if scans > 0 && (pinned || (jobs > 0 && layout == Layout::A)) {
                        whole.push(format!("{layout:?} {name}, {state}:\n{}", plan.join("\n")));
                    }
                }
            }
            conn.close().await?;
        }
    }
    ensure!(whole.is_empty(), "read all jobs: {}", whole.join("\n\n"));
    Ok(())
}

fn statements(layout: Layout) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        ("claim_full", layout.claim(Form::Full)),
        ("claim_lanes", layout.claim(Form::Bound)),
        ("discover", layout.discover()),
        ("settle", layout.settle()),
        ("expired", layout.expired()),
    ];
    if layout == Layout::A {
        all.push(("claim_greedy", layout.claim(Form::Greedy)));
    }
    all
}

/// The plan for parameters that are not known yet.
async fn plan(conn: &mut PgConnection, statement: &str, pinned: bool) -> Result<Vec<String>> {
    let count = (1..).take_while(|n| {
        statement.contains(&format!("${n}:")) || statement.contains(&format!("${n}\n"))
    });
    let nulls = vec!["null"; count.count()].join(", ");
    let seqscan = if pinned { "off" } else { "on" };
    conn.execute(AssertSqlSafe(format!(
        "set plan_cache_mode = force_generic_plan; set enable_seqscan = {seqscan}; prepare planned as {statement}"
    )))
    .await?;
    let rows: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(format!("explain execute planned({nulls})")))
            .persistent(false)
            .fetch_all(&mut *conn)
            .await?;
    conn.execute("deallocate planned").await?;
    Ok(rows)
}

fn reads_all_jobs(line: &str) -> bool {
    line.contains("Seq Scan on") && (line.contains("_jobs") || line.contains("_keys"))
}
