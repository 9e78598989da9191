//! The store that all processes of a world share, and the application's own table in it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use queue_runtime::{JobContext, JobError, JobId, Queue};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool, Row};

/// The kinds of store that several processes can open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A file.
    Sqlite,
    /// A schema on a server.
    Postgres,
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

impl FromStr for StoreKind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => bail!("expected `sqlite` or `postgres`, found `{name}`"),
        }
    }
}

/// Where the URL of the server stands that schemas are made on.
pub const SERVER: &str = "QUEUE_TEST_POSTGRES_URL";

/// A store of a world's own.
pub struct Place {
    url: String,
    /// The server and the schema, if there is one to remove.
    schema: Option<(String, String)>,
}

impl Place {
    /// Names a new store; nothing of it is made yet.
    ///
    /// # Errors
    /// If no server is named.
    pub fn new(kind: StoreKind, folder: &Path) -> Result<Self> {
        match kind {
            StoreKind::Sqlite => Ok(Self {
                url: format!("sqlite://{}/jobs.db", folder.display()),
                schema: None,
            }),
            StoreKind::Postgres => {
                let server =
                    std::env::var(SERVER).with_context(|| format!("{SERVER} is not set"))?;
                let schema = format!("torture_{:016x}", fastrand::u64(..));
                let joint = if server.contains('?') { '&' } else { '?' };
                Ok(Self {
                    url: format!("{server}{joint}schema={schema}&connections=6"),
                    schema: Some((server, schema)),
                })
            }
        }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes the tables of the queue and of the application.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn make(&self) -> Result<Queue> {
        let queue = self.open().await?;
        let database = Database::open(&self.url, &queue).await?;
        let sql = "create table torture_effects (job text not null, token bigint not null)";
        database.execute(sql).await?;
        database
            .execute("create table torture_orders (n bigint not null)")
            .await?;
        Ok(queue)
    }

    /// Opens the queue, making its tables if there are none.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn open(&self) -> Result<Queue> {
        Ok(Queue::open(&self.url).migrate().await?)
    }

    /// Reads the effects of completed transactions: the job and the token of each.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn booked(&self, queue: &Queue) -> Result<Vec<(JobId, i64)>> {
        let database = Database::open(&self.url, queue).await?;
        let sql = "select job, token from torture_effects";
        let rows = match &database {
            Database::Sqlite(queue) => {
                let mut tx = queue.begin().await?;
                let rows = sqlx::query(sql).fetch_all(&mut *tx).await?;
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
            Database::Postgres(pool, schema) => {
                let sql = AssertSqlSafe(in_schema(sql, schema));
                let rows = sqlx::query(sql).fetch_all(pool).await?;
                rows.iter()
                    .map(|row| (row.get(0), row.get(1)))
                    .collect::<Vec<(String, i64)>>()
            }
        };
        let row =
            |(job, token): (String, i64)| Ok((job.parse().map_err(anyhow::Error::msg)?, token));
        rows.into_iter().map(row).collect()
    }

    /// Counts the application's rows that go with bulks.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn orders(&self, queue: &Queue) -> Result<i64> {
        let sql = "select count(*) from torture_orders";
        match &Database::open(&self.url, queue).await? {
            Database::Sqlite(queue) => {
                let mut tx = queue.begin().await?;
                Ok(sqlx::query_scalar(sql).fetch_one(&mut *tx).await?)
            }
            Database::Postgres(pool, schema) => {
                let sql = AssertSqlSafe(in_schema(sql, schema));
                Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
            }
        }
    }

    /// Says what is wrong with a file itself, if anything is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn damage(&self, queue: &Queue) -> Result<Option<String>> {
        if self.schema.is_some() {
            return Ok(None);
        }
        let mut tx = queue.begin().await?;
        let check = sqlx::query_scalar("pragma integrity_check");
        let said: String = check.fetch_one(&mut *tx).await?;
        Ok((said != "ok").then_some(said))
    }

    /// Removes what is on a server; a file goes with its folder.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn end(self) -> Result<()> {
        let Some((server, schema)) = self.schema else {
            return Ok(());
        };
        let mut conn = PgConnection::connect(&server).await?;
        conn.execute("set client_min_messages = error").await?;
        let drop = AssertSqlSafe(format!("drop schema if exists {schema} cascade"));
        conn.execute(drop).await?;
        Ok(conn.close().await?)
    }
}

fn in_schema(sql: &str, schema: &str) -> String {
    sql.replace("torture_", &format!("{schema}.torture_"))
}

/// The database of the queue as the application's handlers write to it.
pub enum Database {
    /// Transactions on the queue's own file.
    Sqlite(Queue),
    /// The application's pool, and the schema of its table.
    Postgres(PgPool, String),
}

impl Database {
    /// Opens it.
    ///
    /// # Errors
    /// If the URL is none of ours or the server refuses.
    pub async fn open(url: &str, queue: &Queue) -> Result<Self> {
        let Some((server, schema)) = url.split_once("schema=") else {
            return Ok(Self::Sqlite(queue.clone()));
        };
        let schema = schema.split('&').next().unwrap_or(schema);
        let options = sqlx::postgres::PgPoolOptions::new().max_connections(4);
        let pool = options.connect_lazy(server.trim_end_matches(['?', '&']))?;
        Ok(Self::Postgres(pool, schema.to_owned()))
    }

    async fn execute(&self, sql: &'static str) -> Result<()> {
        match self {
            Self::Sqlite(queue) => {
                let mut tx = queue.begin().await?;
                tx.execute(sql).await?;
                tx.commit().await?;
            }
            Self::Postgres(pool, schema) => {
                pool.execute(AssertSqlSafe(in_schema(sql, schema))).await?;
            }
        }
        Ok(())
    }

    /// Writes a row of the application's and enqueues jobs, in one transaction.
    ///
    /// # Errors
    /// If the store refuses; then neither happened.
    pub(crate) async fn order(&self, queue: &Queue, jobs: Vec<crate::jobs::NoopJob>) -> Result<()> {
        let sql = "insert into torture_orders (n) values (1)";
        let sent = match self {
            Self::Sqlite(file) => {
                let mut tx = file.begin().await?;
                tx.execute(sql).await?;
                let sent = queue.enqueue_all(jobs).in_tx(&mut tx).await?;
                tx.commit().await?;
                sent
            }
            Self::Postgres(pool, schema) => {
                let mut tx = pool.begin().await?;
                tx.execute(AssertSqlSafe(in_schema(sql, schema))).await?;
                let sent = queue.enqueue_all(jobs).in_tx(&mut tx).await?;
                tx.commit().await?;
                sent
            }
        };
        for sent in sent {
            sent?;
        }
        Ok(())
    }

    /// Takes the effect of a job and completes it, in one transaction.
    ///
    /// # Errors
    /// If the lease is lost or the store refuses; then neither happened, or the runtime finds out.
    pub async fn book(
        &self,
        ctx: &JobContext,
        before_commit: impl FnOnce(),
    ) -> Result<(), JobError> {
        let (job, token) = (ctx.job_id().to_string(), ctx.fence().get());
        match self {
            Self::Sqlite(queue) => {
                let mut tx = queue.begin().await?;
                sqlx::query("insert into torture_effects (job, token) values (?, ?)")
                    .bind(job)
                    .bind(token)
                    .execute(&mut *tx)
                    .await?;
                ctx.complete_in(&mut tx).await?;
                before_commit();
                tx.commit().await?;
            }
            Self::Postgres(pool, schema) => {
                let mut tx = pool.begin().await?;
                let sql = "insert into torture_effects (job, token) values ($1, $2)";
                sqlx::query(AssertSqlSafe(in_schema(sql, schema)))
                    .bind(job)
                    .bind(token)
                    .execute(&mut *tx)
                    .await?;
                ctx.complete_in(&mut tx).await?;
                before_commit();
                tx.commit().await?;
            }
        }
        Ok(())
    }
}
