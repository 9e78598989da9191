//! Opens connections, each with the same promises, set and read back.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnection, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Error as SqlxError, Executor};

use super::error::{self, Fault, store_error};
use super::options::{IN_MEMORY, SqliteOptions};
use super::rows::Columns;
use super::statements::Statements;
use crate::error::{OpenError, StoreError, StoreErrorKind};

/// How long all tries to open a connection may take beyond the busy timeout. Another process
/// that turns the file's journal to WAL refuses everybody else at once instead of letting them
/// wait, so one try may be too few.
const TRIES_BEYOND: Duration = Duration::from_secs(2);

/// The pause between two tries.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Opens a connection that keeps our promises, or gives up a little after the busy timeout.
pub(super) async fn connect(
    options: &SqliteOptions,
    statements: &Statements,
    operation: &'static str,
) -> Result<SqliteConnection, StoreError> {
    options.verify_file(operation)?;
    let began = options.seam.elapsed();
    let allowed = options.busy_timeout + TRIES_BEYOND;
    let mut pauses = Duration::ZERO;
    let mut left = allowed;
    let (mut conn, wait) = loop {
        let wait = options.busy_timeout.min(left);
        let connect = options.connect_options().busy_timeout(wait);
        match connect.connect().await {
            Ok(conn) => break (conn, wait),
            Err(error) if error::is_busy(&error) => {
                pauses += TRY_AGAIN_AFTER;
                // On a clock that stands still, the pauses alone are the time that has passed.
                let spent = options.seam.elapsed().saturating_sub(began).max(pauses);
                left = allowed.saturating_sub(spent);
                if left.is_zero() {
                    return Err(explained(operation, &options.path, error));
                }
                options.seam.sleep(TRY_AGAIN_AFTER).await;
            }
            Err(error) => return Err(explained(operation, &options.path, error)),
        }
    };
    if wait < options.busy_timeout {
        let whole = super::rows::span_ms(options.busy_timeout);
        let set = AssertSqlSafe(format!("pragma busy_timeout = {whole}"));
        let done = conn.execute(set).await;
        done.map_err(|error| explained(operation, &options.path, error))?;
    }
    verify(&mut conn, options, statements, operation).await?;
    Ok(conn)
}

/// Makes a pool whose connections keep our promises, without opening one yet.
pub(super) fn pool(
    options: &SqliteOptions,
    statements: &Arc<Statements>,
    connections_max: u32,
) -> SqlitePool {
    let checked = (options.clone(), Arc::clone(statements));
    SqlitePoolOptions::new()
        .after_connect(move |conn, _| {
            let (options, statements) = checked.clone();
            Box::pin(async move {
                verify(conn, &options, &statements, "connect")
                    .await
                    .map_err(|error| SqlxError::Configuration(Box::new(error)))
            })
        })
        .max_connections(connections_max)
        .acquire_timeout(options.busy_timeout + Duration::from_secs(1))
        .test_before_acquire(false)
        .connect_lazy_with(options.connect_options())
}

/// Reads back what was set: a pragma that SQLite does not like is ignored without an error. Also
/// looks whether it was the store's file that was opened.
async fn verify(
    conn: &mut SqliteConnection,
    options: &SqliteOptions,
    statements: &Statements,
    operation: &'static str,
) -> Result<(), StoreError> {
    let read = async {
        let row = statements.pragmas.query().fetch_one(&mut *conn).await?;
        let mut columns = Columns::of(&row);
        let journal_mode: String = columns.take()?;
        let rest: (i64, i64, i64) = (columns.take()?, columns.take()?, columns.take()?);
        let file: Option<String> = columns.take()?;
        Ok::<_, Fault>((journal_mode, rest, file))
    };
    let (journal_mode, (synchronous, foreign_keys, busy_timeout), file) = match read.await {
        Ok(read) => read,
        Err(Fault::Sql(error)) => return Err(explained(operation, &options.path, error)),
        Err(fault) => return Err(fault.into_store(operation)),
    };
    let refuse = |rule: String| {
        let path = options.path.display();
        Err(StoreError::new(
            StoreErrorKind::Unsupported,
            operation,
            format!("database {path}: {rule}"),
        ))
    };
    if file.is_none_or(|file| file.is_empty()) {
        return refuse(IN_MEMORY.to_owned());
    }
    if !journal_mode.eq_ignore_ascii_case("wal") {
        return refuse(format!(
            "journal_mode is {journal_mode} and could not be set to wal. \
             Put the file on a local disk"
        ));
    }
    if synchronous != options.synchronous.pragma() {
        let wanted = options.synchronous.pragma();
        return refuse(format!("synchronous is {synchronous} instead of {wanted}"));
    }
    if foreign_keys != 1 {
        return refuse("foreign_keys is off and could not be set".to_owned());
    }
    let wanted = super::rows::span_ms(options.busy_timeout);
    if busy_timeout != wanted {
        return refuse(format!(
            "busy_timeout is {busy_timeout} ms instead of {wanted} ms"
        ));
    }
    options.verify_file(operation)
}

/// A path in a message, which stays readable however long the path is.
pub(super) fn for_people(path: &Path) -> String {
    crate::job::shorten_to(400, &path.display().to_string())
}

/// Looks at the path before SQLite does, which has one answer for most faults.
pub(super) fn check_path(options: &SqliteOptions) -> Result<(), OpenError> {
    let path = options.path.as_path();
    let shown = for_people(path);
    if path.to_string_lossy().starts_with("file:") {
        return Ok(()); // SQLite's own form of address, which it takes apart itself
    }
    let refuse = |rule: String| {
        Err(OpenError::Store(StoreError::new(
            StoreErrorKind::InvalidInput,
            "open",
            rule,
        )))
    };
    if path.is_dir() {
        return refuse(format!(
            "database {shown}: is a directory. Name a file in it, such as {}",
            path.join("jobs.db").display()
        ));
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match std::fs::metadata(parent) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => {
            return refuse(format!(
                "database {shown}: its parent {} is not a directory. Choose another path",
                for_people(parent)
            ));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return refuse(format!(
                "database {shown}: its parent directory {} does not exist. Create it first",
                for_people(parent)
            ));
        }
        Err(error) => {
            return refuse(format!(
                "database {shown}: its parent directory {} cannot be read: {error}",
                for_people(parent)
            ));
        }
    }
    Ok(())
}

/// Says what about the file is wrong, where SQLite's code tells.
pub(super) fn explained(operation: &'static str, path: &Path, error: SqlxError) -> StoreError {
    use StoreErrorKind::{Corrupt, InvalidInput, Unavailable};
    let (kind, rule) = if error::is_not_a_database(&error) {
        (
            Corrupt,
            "the file is not a database, or it is encrypted. Give the path of a SQLite file",
        )
    } else if error::is_corrupt(&error) {
        (
            Corrupt,
            "the database file is damaged. Restore it from a backup",
        )
    } else if error::is_read_only(&error) {
        (
            InvalidInput,
            "the file is read-only. Give this process the right to write it",
        )
    } else if error::is_busy(&error) {
        (
            Unavailable,
            "another program holds the file's lock, so it cannot be opened. Close what uses the \
             file alone, or let its transaction end",
        )
    } else if error::is_full(&error) {
        (Unavailable, "the disk is full. Free space on it")
    } else if error::cannot_open(&error) && operation != "open" {
        // It could be opened before: file handles have run out, or something passing like it.
        (Unavailable, "the file cannot be opened at the moment")
    } else if error::cannot_open(&error) && !path.exists() {
        (
            InvalidInput,
            "does not exist, and making it is switched off or not allowed. Create it, or open \
             with `create(true)`",
        )
    } else if error::cannot_open(&error) {
        (
            InvalidInput,
            "the file cannot be opened for writing. Give this process the right to write \
             the file and its directory",
        )
    } else {
        return store_error(operation, error);
    };
    let said = format!("database {}: {rule}", for_people(path));
    StoreError::new(kind, operation, said).caused_by(error)
}
