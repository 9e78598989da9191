//! Where the database is and how it is used.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};

use super::address;
use super::connect::ms;
use super::instant::At;
use crate::error::OpenError;
use crate::seam::{Seam, SystemSeam};
use crate::time::Timestamp;

/// How long a statement waits for a row that another transaction has locked.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a statement may take in all.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The connections of a store's pools: two for a worker's claims and settlements, the others for
/// producers and for looking at jobs.
const CONNECTIONS: u32 = 5;

/// The fewest connections of a store: with one, a worker and a producer would wait for each other.
const CONNECTIONS_MIN: u32 = 2;

/// The most connections of a store; more than a server takes by default.
const CONNECTIONS_MAX: u32 = 1_000;

/// Statements that a connection keeps prepared: all of ours.
const STATEMENTS_KEPT: usize = 128;

/// The only schemas where names without one are looked up: Postgres's own. Whatever stands in the
/// search path of the role may hold operators that fit our statements better than the built-in
/// ones.
pub(super) const SEARCH_PATH: &str = "pg_catalog,pg_temp";

/// How our statements are read and planned on our own connections: planned once, by their
/// indexes, and never compiled. A plan that was made while the tables were empty would walk them
/// for ever after.
const SESSION: [(&str, &str); 4] = [
    ("search_path", SEARCH_PATH),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
];

/// The schema of the tables unless said otherwise.
const SCHEMA: &str = "queue";

/// The longest name of a schema in bytes; Postgres cuts what is longer.
const NAME_BYTES_MAX: usize = 63;

/// How to open a [`PostgresStore`](super::PostgresStore).
///
/// A store has connections of its own ([`connections`](Self::connections)), one more on which it
/// listens for new jobs (none behind a pooler), and one per running worker for its heartbeat.
///
/// ```
/// use queue_runtime::store::postgres::PostgresOptions;
///
/// let options = PostgresOptions::new("postgres://app@localhost/app")?
///     .schema("jobs")?
///     .connections(8)?;
/// # Ok::<(), queue_runtime::error::OpenError>(())
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    connect: PgConnectOptions,
    pub(super) schema: String,
    pub(super) connections: u32,
    pub(super) behind_pooler: bool,
    pub(super) notify: bool,
    pub(super) migrate: bool,
    pub(super) lock_timeout: Duration,
    pub(super) statement_timeout: Duration,
    pub(super) clock: Option<Arc<dyn Seam>>,
    pub(crate) seam: Arc<dyn Seam>,
}

/// Says where the database is, never the password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("server", &self.server())
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("behind_pooler", &self.behind_pooler)
            .finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// Names the database by a URL such as `postgres://user:password@host:5432/database`.
    ///
    /// What the URL leaves out comes from the usual variables (`PGHOST`, `PGUSER`, `PGPASSWORD`,
    /// …). Beside the parameters of every Postgres client (`sslmode`, `application_name`, …) it
    /// may have `schema=jobs`, `connections=8`, `pooler=transaction` and `notify=off`, which mean
    /// the same as the methods here.
    ///
    /// # Errors
    /// [`OpenError::InvalidUrl`] for a URL of another scheme, without a host, or with a value that
    /// breaks a rule. The message never holds the password.
    pub fn new(url: impl AsRef<str>) -> Result<Self, OpenError> {
        let url = url.as_ref();
        let (connect, ours) = address::read(url)?;
        let mut options = Self::from_connect(connect);
        for (name, value) in ours {
            let taken = options.parameter(&name, &value);
            options = taken.map_err(|rule| address::refused(url, rule))?;
        }
        Ok(options)
    }

    /// Takes the server, user and database of an sqlx pool; the store opens connections of its
    /// own, so that the application's transactions cannot use up those of the queue.
    pub fn from_pool(pool: &PgPool) -> Self {
        Self::from_connect(pool.connect_options().as_ref().clone())
    }

    fn from_connect(connect: PgConnectOptions) -> Self {
        Self {
            connect,
            schema: SCHEMA.to_owned(),
            connections: CONNECTIONS,
            behind_pooler: false,
            notify: true,
            migrate: false,
            lock_timeout: LOCK_TIMEOUT,
            statement_timeout: STATEMENT_TIMEOUT,
            clock: None,
            seam: Arc::new(SystemSeam::new()),
        }
    }

    fn parameter(self, name: &str, value: &str) -> Result<Self, String> {
        match (name, value) {
            ("schema", name) => self.schema(name).map_err(|error| error.to_string()),
            ("connections", count) => {
                let count = count.parse().map_err(|_| {
                    format!("connections={count:?} is no number. Write connections=8")
                })?;
                self.connections(count).map_err(|error| error.to_string())
            }
            ("pooler", "transaction") => Ok(self.behind_pooler(true)),
            ("pooler", "off") => Ok(self.behind_pooler(false)),
            ("pooler", value) => Err(format!(
                "pooler={value:?} is unknown. Write pooler=transaction or pooler=off"
            )),
            ("notify", "on") => Ok(self.notify(true)),
            ("notify", "off") => Ok(self.notify(false)),
            (name, value) => Err(format!(
                "{name}={value:?} is unknown. Write {name}=on or off"
            )),
        }
    }

    /// Keeps the tables in this schema instead of `queue`: a letter or `_`, then letters, digits
    /// and `_`, at most 63 bytes, not beginning with `pg_`. Several queues may share a database,
    /// each in a schema of its own.
    ///
    /// # Errors
    /// [`OpenError::InvalidUrl`] for another name.
    pub fn schema(mut self, name: impl Into<String>) -> Result<Self, OpenError> {
        let name = name.into();
        let refuse = |rule: &str| {
            Err(OpenError::InvalidUrl {
                url: format!("schema {:?}", crate::job::shorten(&name)),
                rule: rule.to_owned(),
            })
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return refuse("must begin with a letter or `_`");
        }
        if !name.chars().all(is_word) {
            return refuse("must consist of ASCII letters, digits and `_`");
        }
        if name.len() > NAME_BYTES_MAX {
            return refuse("must have at most 63 bytes");
        }
        if name.to_ascii_lowercase().starts_with("pg_") || name == "information_schema" {
            return refuse("belongs to Postgres itself. Choose another name");
        }
        self.schema = name;
        Ok(self)
    }

    /// Opens at most this many connections for the store's verbs; 2 to 1,000, 5 unless said
    /// otherwise.
    ///
    /// Two of them, or one of fewer than four, are kept for what workers do with their jobs (claim,
    /// settle, rescue, prune); all workers that run on this store share them. The others are for
    /// enqueues, look-ups and all else, so that producers who wait for each other never hold up a
    /// worker.
    ///
    /// # Errors
    /// [`OpenError::InvalidUrl`] for another number.
    pub fn connections(mut self, count: u32) -> Result<Self, OpenError> {
        if !(CONNECTIONS_MIN..=CONNECTIONS_MAX).contains(&count) {
            return Err(OpenError::InvalidUrl {
                url: format!("connections {count}"),
                rule: format!(
                    "must be {CONNECTIONS_MIN} to {CONNECTIONS_MAX}: one is kept for what a \
                     worker does"
                ),
            });
        }
        self.connections = count;
        Ok(self)
    }

    /// Says that a pooler in transaction mode stands before the server, such as pgbouncer: then
    /// nothing is kept between transactions, no statement stays prepared, and new jobs are found
    /// by polling alone. False unless said otherwise.
    #[must_use]
    pub fn behind_pooler(mut self, is_behind: bool) -> Self {
        self.behind_pooler = is_behind;
        self
    }

    /// Says whether workers in other processes are told at once of jobs that became claimable
    /// (`NOTIFY`); true unless said otherwise. Without it they find them by polling. Workers on
    /// this very store are told without the server, save of jobs inside a transaction of yours.
    ///
    /// An enqueue never waits for that: it is told after its commit, many enqueues at once. Only
    /// a job that is enqueued inside a transaction of yours is told by your own commit, once per
    /// transaction. From just before such a commit to its end Postgres holds a lock that every
    /// committing transaction with a notification needs, so that they cannot share a wait for the
    /// disk: on a slow disk many writers at once enqueue several times slower. A commit also fails
    /// if the server's queue of notifications is full because another client has listened and not
    /// read for long. If either matters more than a second until the next poll, say false.
    ///
    /// This is about sending: a worker hears what others send in either case.
    #[must_use]
    pub fn notify(mut self, notify: bool) -> Self {
        self.notify = notify;
        self
    }

    /// Creates or upgrades the tables when the store is opened; false unless said otherwise, so
    /// that a program never changes a shared database unasked.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// How long a statement of a transaction waits for a row that another transaction has locked; 5 s
    /// unless said otherwise, and a millisecond at least. Results of jobs wait 0.2 s at first: then
    /// those that are free are recorded, and the others offered again.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// How long a statement may take in all; 30 s unless said otherwise, and a millisecond at least.
    /// A call that has no answer 5 s after that is given up, whatever the server does.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Makes every stored instant come from this clock instead of the server's, so that a test
    /// can move time by hand.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Seam>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Runs the tasks and pauses of the store, and of a queue that is opened with these options,
    /// through this seam instead of the system's.
    #[must_use]
    pub fn seam(mut self, seam: Arc<dyn Seam>) -> Self {
        self.seam = seam;
        self
    }

    /// What every connection is opened with.
    pub(super) fn connect_options(&self) -> PgConnectOptions {
        let connect = self.connect.clone().disable_statement_logging();
        let connect = match connect.get_application_name() {
            Some(_) => connect,
            None => connect.application_name("queue-runtime"),
        };
        if self.behind_pooler {
            // A pooler refuses a setting that it does not know how to keep apart.
            connect
                .statement_cache_capacity(0)
                .extra_float_digits(None::<i8>)
        } else {
            connect
                .statement_cache_capacity(STATEMENTS_KEPT)
                .options(SESSION)
                .options([
                    ("lock_timeout", ms(self.lock_timeout)),
                    ("statement_timeout", ms(self.statement_timeout)),
                ])
        }
    }

    /// The time on a clock moved by hand, if there is one.
    pub(super) fn manual_now(&self) -> Option<At> {
        self.clock.as_ref().map(|clock| At(clock.now()))
    }

    /// The time as far as it is known without asking the server.
    pub(super) fn wall_clock(&self) -> Timestamp {
        self.clock.as_ref().unwrap_or(&self.seam).now()
    }

    /// The server for people: user, host, port and database.
    pub(super) fn server(&self) -> String {
        let connect = &self.connect;
        format!(
            "{}@{}:{}/{}",
            connect.get_username(),
            connect.get_host(),
            connect.get_port(),
            connect.get_database().unwrap_or(connect.get_username()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schemas_name_is_a_plain_word() {
        let options = || PostgresOptions::new("postgres://app@host/db").expect("valid");
        for name in ["queue", "_jobs", "Jobs2", &"a".repeat(63)] {
            assert!(options().schema(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "a b",
            "pg_x",
            "PG_x",
            "a\"b",
            "a'b",
            "1a",
            "é",
            "a.b",
            &"a".repeat(64),
        ] {
            assert!(options().schema(name).is_err(), "{name}");
        }
    }

    #[test]
    fn parameters_of_the_url_mean_what_the_methods_mean() {
        let url = "postgres://app@host/db?schema=jobs&sslmode=disable&connections=9\
                   &pooler=transaction&notify=off";
        let options = PostgresOptions::new(url).expect("valid");
        assert_eq!((options.schema.as_str(), options.connections), ("jobs", 9));
        assert!(options.behind_pooler && !options.notify);
    }
}
