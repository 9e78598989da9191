//! Opens a queue: which store an address names, and whether its tables may be made.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::sync::Arc;

use super::Queue;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::backend::Backend;
use crate::error::OpenError;
#[cfg(feature = "postgres")]
use crate::store::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
use crate::store::sqlite::{SqliteOptions, SqliteStore};

/// The environment variables that name the store, the first that is set.
const URL_VARIABLES: [&str; 2] = ["QUEUE_URL", "DATABASE_URL"];

/// A queue on its way to be opened; await it. See [`Queue::open`].
#[derive(Debug)]
#[must_use = "a queue is not opened until this is awaited"]
pub struct Opening {
    source: Source,
    migrate: bool,
}

/// What names the store.
#[derive(Debug)]
enum Source {
    Memory,
    #[cfg(feature = "sqlite")]
    Sqlite(Box<SqliteOptions>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresOptions>),
    /// Nothing that can be opened; said when it is awaited.
    Refused(OpenError),
}

impl Opening {
    /// Names the store by its address.
    pub(super) fn of_url(url: &str) -> Self {
        Self::new(source(url).unwrap_or_else(Source::Refused))
    }

    /// Names the store by what the environment says.
    pub(super) fn of_environment() -> Self {
        for name in URL_VARIABLES {
            match std::env::var(name) {
                Ok(url) => return Self::of_url(&url),
                Err(std::env::VarError::NotPresent) => {}
                Err(std::env::VarError::NotUnicode(_)) => {
                    let rule = "its value is not valid UTF-8 (the value is not shown)".to_owned();
                    return Self::new(Source::Refused(OpenError::Environment { name, rule }));
                }
            }
        }
        let rule = "not set; write an address such as `sqlite://jobs.db`".to_owned();
        Self::new(Source::Refused(OpenError::Environment {
            name: URL_VARIABLES[0],
            rule,
        }))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            migrate: false,
        }
    }

    /// Creates or upgrades the queue's tables, if that is needed.
    ///
    /// A file of SQLite belongs to one program and is brought up to date in any case. A Postgres
    /// database is shared, so a program only looks whether the tables are there unless this is
    /// said.
    pub fn migrate(mut self) -> Self {
        self.migrate = true;
        self
    }

    async fn open(self) -> Result<Queue, OpenError> {
        match self.source {
            Source::Memory => Ok(Queue::in_memory()),
            #[cfg(feature = "sqlite")]
            Source::Sqlite(options) => {
                let seam = Arc::clone(&options.seam);
                let store = SqliteStore::open(*options).await?;
                Ok(Queue::on(Backend::on_sqlite(Arc::new(store), seam)))
            }
            #[cfg(feature = "postgres")]
            Source::Postgres(options) => {
                let seam = Arc::clone(&options.seam);
                let options = match self.migrate {
                    true => options.migrate(true),
                    false => *options,
                };
                let store = PostgresStore::open(options).await?;
                Ok(Queue::on(Backend::on_postgres(Arc::new(store), seam)))
            }
            Source::Refused(error) => Err(error),
        }
    }
}

fn source(url: &str) -> Result<Source, OpenError> {
    if url == "memory:" || url == "memory://" {
        return Ok(Source::Memory);
    }
    if url.starts_with("postgres:") || url.starts_with("postgresql:") {
        return postgres(url);
    }
    match url.split_once("://") {
        Some((scheme, _)) if scheme != "sqlite" => Err(OpenError::InvalidUrl {
            // No more than the scheme: what follows may hold a password.
            url: crate::job::shorten(&format!("{scheme}://…")),
            rule: "names no store of this library. Write sqlite://jobs.db, \
                   postgres://user@host/database or memory:"
                .to_owned(),
        }),
        None if !url.starts_with("sqlite:") && !is_file(url) => Err(OpenError::InvalidUrl {
            // Not the address itself: it may hold a password.
            url: "…".to_owned(),
            rule: "is no address of a store and does not look like a file. Write \
                   sqlite://jobs.db, ./jobs, postgres://user@host/database or memory:"
                .to_owned(),
        }),
        _ => sqlite(url),
    }
}

/// Says whether an address without a scheme is meant as a file. A slip in the address of a server
/// must not make a file of that name, into which jobs go that nobody runs.
fn is_file(address: &str) -> bool {
    const ENDINGS: [&str; 4] = [".db", ".db3", ".sqlite", ".sqlite3"];
    let is_path = ["./", "../", "/"]
        .iter()
        .any(|start| address.starts_with(start));
    let is_server = address.starts_with("postgres") || address.contains(['@', '=']);
    is_path || (!is_server && ENDINGS.iter().any(|ending| address.ends_with(ending)))
}

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> Result<Source, OpenError> {
    Ok(Source::Postgres(Box::new(PostgresOptions::new(url)?)))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<Source, OpenError> {
    Err(OpenError::InvalidUrl {
        // Not the address itself: it may hold a password.
        url: "postgres://…".to_owned(),
        rule: "Postgres is not compiled in; enable the feature `postgres`".to_owned(),
    })
}

#[cfg(feature = "sqlite")]
fn sqlite(url: &str) -> Result<Source, OpenError> {
    Ok(Source::Sqlite(Box::new(SqliteOptions::new(url)?)))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(url: &str) -> Result<Source, OpenError> {
    Err(OpenError::InvalidUrl {
        url: crate::job::shorten(url),
        rule: "SQLite is not compiled in; enable the feature `sqlite`, or write `memory:`"
            .to_owned(),
    })
}

impl IntoFuture for Opening {
    type Output = Result<Queue, OpenError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

#[cfg(feature = "sqlite")]
impl From<SqliteOptions> for Opening {
    fn from(options: SqliteOptions) -> Self {
        Self::new(Source::Sqlite(Box::new(options)))
    }
}

#[cfg(feature = "sqlite")]
impl From<&sqlx::SqlitePool> for Opening {
    fn from(pool: &sqlx::SqlitePool) -> Self {
        SqliteOptions::from_pool(pool).into()
    }
}

#[cfg(feature = "postgres")]
impl From<PostgresOptions> for Opening {
    fn from(options: PostgresOptions) -> Self {
        Self::new(Source::Postgres(Box::new(options)))
    }
}

#[cfg(feature = "postgres")]
impl From<&sqlx::PgPool> for Opening {
    fn from(pool: &sqlx::PgPool) -> Self {
        PostgresOptions::from_pool(pool).into()
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::seam::{Seam, SystemSeam};

    #[test]
    fn a_slip_in_the_address_of_a_server_is_not_taken_for_a_file() {
        for slip in [
            "",
            "host=127.0.0.1 user=postgres",
            "127.0.0.1:5432",
            "db.internal",
            "postgres",
            "postgres//user@host/db",
            "user:password@host/jobs.db",
        ] {
            let refused = source(slip).expect_err(slip).to_string();
            assert!(refused.contains("does not look like a file"), "{refused}");
            assert!(!refused.contains("password@"), "{refused}");
        }
        for file in [
            "jobs.db",
            "./jobs",
            "/var/lib/app/jobs",
            "../jobs.sqlite3",
            "data/jobs.db",
        ] {
            assert!(matches!(source(file), Ok(Source::Sqlite(_))), "{file}");
        }
    }

    #[tokio::test]
    async fn a_seam_of_the_options_is_the_queues_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let seam: Arc<dyn Seam> = Arc::new(SystemSeam::new());
        let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
        let options = SqliteOptions::new(url).expect("an address");
        let options = options.seam(Arc::clone(&seam));

        let queue = Queue::open_with(options).await.expect("opened");

        assert!(Arc::ptr_eq(queue.backend.seam(), &seam));
        queue.close().await;
    }
}
