//! The same server in hand-written statements: no leases, no history, no duplicates, one queue.

use anyhow::Result;
use queue_runtime::job::NewJob;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Executor, Row};
use uuid::Uuid;

use crate::drain::{Drainer, Turned};

const CLAIM: &str = include_str!("sql/claim.sql");
const COMPLETE: &str = include_str!("sql/complete.sql");
const INSERT: &str = include_str!("sql/insert.sql");
const INSERT_ONE: &str = include_str!("sql/insert_one.sql");

/// A connection that removes what it took before and takes more, in one transaction as the store
/// does.
pub(crate) struct RawLoop {
    pub(crate) conn: PgConnection,
    pub(crate) batch: usize,
    pub(crate) held: Vec<Job>,
}

/// What a handler would need.
pub(crate) struct Job {
    id: Uuid,
    _payload: String,
    _attempts: i32,
}

impl Drainer for RawLoop {
    async fn turn(&mut self) -> Result<Turned> {
        self.conn.execute("begin").await?;
        let settled = self.held.len();
        if settled > 0 {
            let ids: Vec<Uuid> = self.held.iter().map(|job| job.id).collect();
            sqlx::query(COMPLETE)
                .bind(ids)
                .execute(&mut self.conn)
                .await?;
        }
        let rows = sqlx::query(CLAIM)
            .bind("default")
            .bind(i64::try_from(self.batch)?)
            .fetch_all(&mut self.conn)
            .await?;
        self.conn.execute("commit").await?;
        self.held = rows.iter().map(job).collect::<Result<_>>()?;
        Ok(Turned {
            settled,
            claimed: self.held.len(),
        })
    }
}

fn job(row: &PgRow) -> Result<Job> {
    Ok(Job {
        id: row.try_get(0)?,
        _payload: row.try_get(1)?,
        _attempts: row.try_get(2)?,
    })
}

/// Inserts many jobs by one statement.
pub(crate) async fn insert(conn: &mut PgConnection, jobs: &[NewJob]) -> Result<()> {
    let ids: Vec<Uuid> = jobs.iter().map(|job| *job.id.as_uuid()).collect();
    let payloads: Vec<&str> = jobs.iter().map(|job| job.payload.as_str()).collect();
    sqlx::query(INSERT)
        .bind(ids)
        .bind(payloads)
        .execute(conn)
        .await?;
    Ok(())
}

/// Inserts one job.
pub(crate) async fn insert_one(conn: &mut PgConnection, job: &NewJob) -> Result<()> {
    sqlx::query(INSERT_ONE)
        .bind(*job.id.as_uuid())
        .bind(job.payload.as_str())
        .execute(conn)
        .await?;
    Ok(())
}
