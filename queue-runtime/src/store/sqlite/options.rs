//! Where the database file is and how it is used.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};

use super::file::OpenedFile;
use crate::error::{OpenError, StoreError};
use crate::seam::{Seam, SystemSeam};

/// How long a statement waits for another writer before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Rows that a connection's thread may be ahead of its reader: a whole claim.
const ROWS_AHEAD: usize = 1024;

/// Statements that a connection keeps prepared: all of ours.
const STATEMENTS_KEPT: usize = 128;

/// When a commit counts as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// When it is on the disk: an accepted job survives a power failure.
    #[default]
    Full,
    /// When the operating system has it: an accepted job survives a crash of the process, but the
    /// newest ones may be lost in a power failure. Faster for a lone producer.
    Normal,
}

impl Synchronous {
    fn sqlx(self) -> SqliteSynchronous {
        match self {
            Self::Full => SqliteSynchronous::Full,
            Self::Normal => SqliteSynchronous::Normal,
        }
    }

    /// The number by which SQLite reads it back.
    pub(super) fn pragma(self) -> i64 {
        match self {
            Self::Normal => 1,
            Self::Full => 2,
        }
    }
}

/// How to open a [`SqliteStore`](super::SqliteStore).
///
/// The file must stay where it is while the store is open. On Unix a file that was deleted,
/// moved away or replaced by another is noticed before the next commit is answered: nothing is
/// accepted into it any more, a worker ends with a [`Corrupt`](crate::error::StoreErrorKind)
/// error, and the store works again only if the very same file comes back to its path. Not
/// noticed are: other systems than Unix; a file that is overwritten in place; the loss of the
/// `-wal` or `-shm` file alone; and what the application commits itself, in a transaction that
/// had begun before the file was gone. Reads may still be answered from the old file.
///
/// ```
/// use queue_runtime::store::sqlite::{SqliteOptions, Synchronous};
///
/// let options = SqliteOptions::new("sqlite://jobs.db")?.synchronous(Synchronous::Normal);
/// # Ok::<(), queue_runtime::error::OpenError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    connect: SqliteConnectOptions,
    pub(super) path: PathBuf,
    pub(super) synchronous: Synchronous,
    pub(super) busy_timeout: Duration,
    /// Whether to make a missing file; `None` leaves it to what the address or pool says.
    pub(super) create: Option<bool>,
    pub(super) clock: Option<Arc<dyn Seam>>,
    pub(crate) seam: Arc<dyn Seam>,
    /// The file, once the store has opened it.
    pub(super) file: Option<OpenedFile>,
}

impl SqliteOptions {
    /// Names the database by a path or by a URL such as `sqlite://jobs.db`; the file is made if
    /// it is missing.
    ///
    /// # Errors
    /// [`OpenError::InvalidUrl`] for a URL of another scheme, and for an in-memory database:
    /// the store has several connections, and each would see a database of its own.
    pub fn new(address: impl AsRef<str>) -> Result<Self, OpenError> {
        let address = address.as_ref();
        let refuse = |rule: &str| {
            Err(OpenError::InvalidUrl {
                url: redacted(address),
                rule: rule.to_owned(),
            })
        };
        if address.trim().is_empty() || address.contains('\0') {
            return refuse("must name a file, without NUL. Write sqlite://jobs.db");
        }
        // A word and a colon is a scheme; a drive's letter or a path with a colon is not.
        let scheme = address.split_once(':').map(|(scheme, _)| scheme);
        let is_scheme =
            |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphanumeric());
        if scheme.is_some_and(|word| word != "sqlite" && is_scheme(word)) {
            return refuse("must start with sqlite:// or be a path. Write sqlite://jobs.db");
        }
        let place = address.strip_prefix("sqlite:").unwrap_or(address);
        let place = place.strip_prefix("//").unwrap_or(place);
        if place.is_empty() || place.starts_with('?') {
            return refuse("must name a file. Write sqlite://jobs.db");
        }
        if place
            .split('/')
            .next()
            .is_some_and(|first| first.contains('@'))
        {
            return refuse("a file has no user or host. Write sqlite://jobs.db");
        }
        if place.contains(":memory:") || place.contains("mode=memory") {
            return refuse(IN_MEMORY);
        }
        if !address.starts_with("sqlite:") {
            let connect = SqliteConnectOptions::new().filename(address);
            return Ok(Self::from_connect(connect, Some(true)));
        }
        match SqliteConnectOptions::from_str(address) {
            Ok(connect) => Ok(Self::from_connect(
                connect,
                (!place.contains("mode=")).then_some(true),
            )),
            Err(error) => refuse(&format!("{error}. Write sqlite://jobs.db")),
        }
    }

    /// Uses the file of a pool that the application has; the store opens connections of its own
    /// beside it, with the pool's options.
    pub fn from_pool(pool: &SqlitePool) -> Self {
        Self::from_connect((*pool.connect_options()).clone(), None)
    }

    fn from_connect(connect: SqliteConnectOptions, create: Option<bool>) -> Self {
        Self {
            path: connect.get_filename().to_owned(),
            connect,
            synchronous: Synchronous::default(),
            busy_timeout: BUSY_TIMEOUT,
            create,
            clock: None,
            seam: Arc::new(SystemSeam::new()),
            file: None,
        }
    }

    /// Remembers the file that is open now. Connections that come later never make one, and
    /// find it also when the process has changed its directory.
    pub(super) fn opened(mut self) -> Self {
        let is_path = !self.path.to_string_lossy().starts_with("file:");
        if let (true, Ok(path)) = (is_path, std::path::absolute(&self.path)) {
            self.connect = self.connect.filename(&path);
            self.file = Some(OpenedFile::at(&path));
            self.path = path;
        }
        self.create = Some(false);
        self
    }

    /// Refuses to go on if the file is not at its path any more.
    pub(super) fn verify_file(&self, operation: &'static str) -> Result<(), StoreError> {
        match &self.file {
            Some(file) => file.verify(operation),
            None => Ok(()),
        }
    }

    /// Says when a commit counts as stored; [`Synchronous::Full`] unless said otherwise.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Says how long to wait for another writer of the file; 5 seconds unless said otherwise,
    /// and never more than an hour.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout.min(BUSY_TIMEOUT_MAX);
        self
    }

    /// Says whether a missing file is made; true unless said otherwise.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = Some(create);
        self
    }

    /// Makes every stored instant come from this clock instead of SQLite's, so that a test can
    /// move time by hand.
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

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What every connection is opened with.
    pub(super) fn connect_options(&self) -> SqliteConnectOptions {
        let connect = self
            .connect
            .clone()
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(self.synchronous.sqlx())
            .foreign_keys(true)
            .busy_timeout(self.busy_timeout)
            .row_buffer_size(ROWS_AHEAD)
            .statement_cache_capacity(STATEMENTS_KEPT)
            .disable_statement_logging();
        match self.create {
            Some(create) => connect.create_if_missing(create),
            None => connect,
        }
    }
}

/// The rule that an in-memory database breaks.
pub(super) const IN_MEMORY: &str = "an in-memory database cannot be shared by the store's \
     connections. Use a file in a temporary folder, or the memory store";

/// The longest wait for another writer; SQLite counts milliseconds in 32 bits.
const BUSY_TIMEOUT_MAX: Duration = Duration::from_hours(1);

/// Leaves the user and password of a URL out, and cuts what is left.
fn redacted(address: &str) -> String {
    crate::job::shorten(&without_secrets(address))
}

fn without_secrets(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}://…@{host}"),
            None => address.to_owned(),
        },
        None => address.to_owned(),
    }
}
