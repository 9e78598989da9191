//! The store that both releases share, and changes of its tables that a newer library would make.

use queue_runtime::Queue;
use queue_runtime::store::{postgres, sqlite};
use queue_testkit::conformance::{Fixture as _, PostgresFixture, is_skipped};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

pub(crate) enum Place {
    Sqlite(tempfile::TempDir),
    Postgres(PostgresFixture),
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a temporary folder"))
    }

    /// `None` if there is no server, which is said.
    pub(crate) fn postgres() -> Option<Self> {
        let fixture = PostgresFixture::new();
        (!is_skipped(&fixture)).then_some(Self::Postgres(fixture))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite://{}/jobs.db", folder.path().display()),
            Self::Postgres(fixture) => fixture.url().expect("there is a server"),
        }
    }

    /// Opens a handle of the test's own; the tables are there.
    pub(crate) async fn open(&self) -> Queue {
        Queue::open(self.url()).await.expect("the store opens")
    }

    /// The newest change of the tables that this library knows.
    pub(crate) fn known(&self) -> i64 {
        let newest = match self {
            Self::Sqlite(_) => sqlite::schema::migrations().pop(),
            Self::Postgres(_) => postgres::schema::migrations("any").pop(),
        };
        newest.expect("there are tables").version
    }

    /// Changes the tables as a library would that is newer by so many changes, and says which library
    /// they need from now on.
    pub(crate) async fn migrate_beyond(&self, changes: i64, compatible_from: i64) {
        let version = self.known() + changes;
        let (begin, prefix, now) = match self {
            Self::Sqlite(_) => ("begin immediate", "queue_".to_owned(), "0"),
            Self::Postgres(fixture) => ("begin", format!("{}.", fixture.schema()), "now()"),
        };
        let sql = format!(
            "{begin};
             alter table {prefix}jobs add column note text;
             alter table {prefix}finished_jobs add column note text;
             create table {prefix}notes (id text primary key, note text not null);
             create index jobs_by_note on {prefix}jobs (note) where note is not null;
             insert into {prefix}migrations (version, name, applied_at, compatible_from)
             values ({version}, 'notes', {now}, {compatible_from});
             commit"
        );
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        match self {
            Self::Sqlite(folder) => {
                let options = SqliteConnectOptions::new().filename(folder.path().join("jobs.db"));
                let mut conn = options.connect().await.expect("the file opens");
                sql.execute(&mut conn).await.expect("the tables change");
                conn.close().await.expect("it closes");
            }
            Self::Postgres(_) => {
                let server = std::env::var(PostgresFixture::VARIABLE).expect("there is a server");
                let conn = PgConnection::connect(&server).await;
                let mut conn = conn.expect("the server takes one more");
                sql.execute(&mut conn).await.expect("the tables change");
                conn.close().await.expect("it closes");
            }
        }
    }

    /// Removes everything.
    pub(crate) async fn end(self) {
        if let Self::Postgres(fixture) = self {
            let discarded = fixture.discard().await;
            discarded.expect("the schema is ours to drop");
        }
    }
}
