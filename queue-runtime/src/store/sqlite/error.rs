//! The one place where sqlx's and SQLite's errors become ours.
//!
//! Sorted by what a caller can do: wait and try again (busy, locked, I/O, full, closed), or not.
//! SQLite's own message is kept as the source; it names tables and columns, never values.

use sqlx::Error as SqlxError;

use crate::error::{StoreError, StoreErrorKind};

/// SQLite's primary result codes that we tell apart (<https://www.sqlite.org/rescode.html>).
mod code {
    pub(super) const ERROR: i32 = 1;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const NOMEM: i32 = 7;
    pub(super) const READONLY: i32 = 8;
    pub(super) const INTERRUPT: i32 = 9;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const SCHEMA: i32 = 17;
    pub(super) const TOOBIG: i32 = 18;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOTADB: i32 = 26;
    /// An extended code: a unique value exists already.
    pub(super) const CONSTRAINT_UNIQUE: i32 = 2067;
    /// An extended code: a primary key exists already.
    pub(super) const CONSTRAINT_PRIMARYKEY: i32 = 1555;
}

/// What went wrong inside an operation, before it is known whom to tell.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite or sqlx refused.
    Sql(SqlxError),
    /// A stored value breaks a rule; says which one.
    Row(String),
}

impl From<SqlxError> for Fault {
    fn from(error: SqlxError) -> Self {
        Self::Sql(error)
    }
}

impl Fault {
    /// Tells one caller.
    pub(super) fn into_store(self, operation: &'static str) -> StoreError {
        match self {
            Self::Sql(error) => store_error(operation, error),
            Self::Row(message) => StoreError::new(StoreErrorKind::Corrupt, operation, message),
        }
    }

    /// Tells one of several callers that share the fault.
    pub(super) fn to_store(&self, operation: &'static str) -> StoreError {
        match self {
            Self::Sql(error) => {
                let (kind, said) = classify(error);
                StoreError::new(kind, operation, said).caused_by(error.to_string())
            }
            Self::Row(message) => {
                StoreError::new(StoreErrorKind::Corrupt, operation, message.clone())
            }
        }
    }

    /// Says whether every operation would meet the same fault now, so that trying them one by
    /// one is of no use.
    pub(super) fn hits_everybody(&self) -> bool {
        match self {
            Self::Sql(error) => classify(error).0 == StoreErrorKind::Unavailable,
            Self::Row(_) => false,
        }
    }

    /// Says whether the connection is of no further use.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            Self::Sql(error) => match primary_code(error) {
                Some(code) => matches!(
                    code,
                    code::IOERR | code::CANTOPEN | code::READONLY | code::CORRUPT | code::NOTADB
                ),
                None => matches!(
                    error,
                    SqlxError::WorkerCrashed | SqlxError::Io(_) | SqlxError::Protocol(_)
                ),
            },
            Self::Row(_) => false,
        }
    }
}

/// Turns an error of sqlx into ours.
pub(super) fn store_error(operation: &'static str, error: SqlxError) -> StoreError {
    let (kind, said) = classify(&error);
    StoreError::new(kind, operation, said).caused_by(error)
}

/// The answer of a store that was closed.
pub(super) fn closed(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        operation,
        "the store is closed. Open it again",
    )
}

/// Says whether somebody else holds the lock that is needed.
pub(super) fn is_busy(error: &SqlxError) -> bool {
    matches!(primary_code(error), Some(code::BUSY | code::LOCKED))
}

/// Says whether the file is something else than a SQLite database.
pub(super) fn is_not_a_database(error: &SqlxError) -> bool {
    primary_code(error) == Some(code::NOTADB)
}

/// Says whether the file's content is damaged.
pub(super) fn is_corrupt(error: &SqlxError) -> bool {
    primary_code(error) == Some(code::CORRUPT)
}

/// Says whether the disk is full.
pub(super) fn is_full(error: &SqlxError) -> bool {
    primary_code(error) == Some(code::FULL)
}

/// Says whether the file may not be written.
pub(super) fn is_read_only(error: &SqlxError) -> bool {
    primary_code(error) == Some(code::READONLY)
}

/// Says whether the file could not be opened or made.
pub(super) fn cannot_open(error: &SqlxError) -> bool {
    primary_code(error) == Some(code::CANTOPEN)
}

/// Says whether a table or column of ours is missing.
pub(super) fn lacks_our_tables(error: &SqlxError) -> bool {
    error
        .as_database_error()
        .is_some_and(|e| e.message().starts_with("no such"))
}

fn extended_code(error: &SqlxError) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// The lower byte of SQLite's extended code.
fn primary_code(error: &SqlxError) -> Option<i32> {
    Some(extended_code(error)? & 0xff)
}

fn classify(error: &SqlxError) -> (StoreErrorKind, String) {
    use StoreErrorKind::{Corrupt, InvalidInput, Schema, Unavailable};
    let (kind, said) = match primary_code(error) {
        Some(code::BUSY | code::LOCKED) => (
            Unavailable,
            "the database is locked by another writer for longer than the busy timeout. \
             Keep other transactions on this file short",
        ),
        Some(code::FULL) => (
            Unavailable,
            "the disk is full, so nothing can be stored. Free space on the disk",
        ),
        Some(code::IOERR) => (Unavailable, "reading or writing the database file failed"),
        Some(code::NOMEM | code::INTERRUPT | code::SCHEMA) => {
            (Unavailable, "SQLite could not finish the statement")
        }
        Some(code::CANTOPEN) => (Unavailable, "the database file cannot be opened"),
        Some(code::READONLY) => (
            InvalidInput,
            "the database file is read-only. Give this process the right to write it",
        ),
        Some(code::CORRUPT) => (
            Corrupt,
            "the database file is damaged. Restore it from a backup",
        ),
        Some(code::NOTADB) => (
            Corrupt,
            "the file is not a database. Give the path of a SQLite file",
        ),
        Some(code::TOOBIG) => (InvalidInput, "a value is larger than SQLite can store"),
        Some(code::CONSTRAINT) => match extended_code(error) {
            Some(code::CONSTRAINT_UNIQUE | code::CONSTRAINT_PRIMARYKEY) => (
                Corrupt,
                "a stored row stands where none may be, by a unique rule",
            ),
            _ => (InvalidInput, "a value breaks a rule of the table"),
        },
        Some(code::ERROR) if lacks_our_tables(error) => (
            Schema,
            "the tables of the queue are missing or of another version. Open the store again",
        ),
        Some(_) => (Corrupt, "SQLite refused the statement"),
        None => match error {
            SqlxError::PoolClosed => (Unavailable, "the store is closed. Open it again"),
            SqlxError::PoolTimedOut => (
                Unavailable,
                "no connection became free in time. Keep transactions short",
            ),
            SqlxError::WorkerCrashed | SqlxError::Io(_) | SqlxError::Protocol(_) => {
                (Unavailable, "the connection to the database is lost")
            }
            SqlxError::Encode(_) | SqlxError::Configuration(_) => {
                (InvalidInput, "a value cannot be handed to SQLite")
            }
            _ => (Corrupt, "a stored value cannot be read"),
        },
    };
    (kind, said.to_owned())
}
