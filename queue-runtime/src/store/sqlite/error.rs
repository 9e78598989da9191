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

    /// Says whether the disk, or the space that the database may take on it, is used up.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Sql(error) if is_full(error))
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
    let error = match error {
        // A pool hands on in this way what we said about a connection that it opened.
        SqlxError::Configuration(said) => match said.downcast::<StoreError>() {
            Ok(ours) => return StoreError::new(ours.kind(), operation, ours.to_string()),
            Err(said) => SqlxError::Configuration(said),
        },
        error => error,
    };
    let (kind, said) = classify(&error);
    let is_about_values = matches!(primary_code(&error), Some(code::TOOBIG | code::CONSTRAINT));
    let told = StoreError::new(kind, operation, said).caused_by(error);
    if is_about_values {
        told.about_values()
    } else {
        told
    }
}

/// The answer of a store that was closed.
pub(super) fn closed(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Closed,
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
    use StoreErrorKind::{Closed, Corrupt, InvalidInput, Schema, Unavailable};
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
            SqlxError::PoolClosed => (Closed, "the store is closed. Open it again"),
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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::fmt;

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// What SQLite would say under an extended result code.
    #[derive(Debug)]
    struct Said(i32, &'static str);

    impl fmt::Display for Said {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.1)
        }
    }

    impl std::error::Error for Said {}

    impl DatabaseError for Said {
        fn message(&self) -> &str {
            self.1
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.to_string().into())
        }

        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    fn check(code: i32, message: &'static str, kind: StoreErrorKind, words: &str) {
        let error = store_error("claim", SqlxError::Database(Box::new(Said(code, message))));
        assert_eq!(error.kind(), kind, "for {code}: {error}");
        assert!(error.to_string().contains(words), "for {code}: {error}");
        assert!(error.to_string().starts_with("claim: "), "{error}");
    }

    #[test]
    fn sqlites_codes_are_sorted_by_what_a_caller_can_do() {
        use StoreErrorKind::{Corrupt, InvalidInput, Schema, Unavailable};
        check(5, "database is locked", Unavailable, "busy timeout");
        check(517, "database is locked", Unavailable, "busy timeout");
        check(6, "database table is locked", Unavailable, "busy timeout");
        check(13, "database or disk is full", Unavailable, "disk is full");
        check(10, "disk I/O error", Unavailable, "reading or writing");
        check(2_570, "disk I/O error", Unavailable, "reading or writing");
        check(14, "unable to open", Unavailable, "cannot be opened");
        check(8, "attempt to write a readonly", InvalidInput, "read-only");
        check(
            1_032,
            "attempt to write a readonly",
            InvalidInput,
            "read-only",
        );
        check(11, "disk image is malformed", Corrupt, "damaged");
        check(26, "file is not a database", Corrupt, "not a database");
        check(18, "string or blob too big", InvalidInput, "larger than");
        check(
            1_299,
            "NOT NULL constraint",
            InvalidInput,
            "rule of the table",
        );
        check(275, "CHECK constraint", InvalidInput, "rule of the table");
        check(2_067, "UNIQUE constraint", Corrupt, "unique rule");
        check(1, "no such table: queue_jobs", Schema, "Open the store");
        check(1, "near \"selct\": syntax error", Corrupt, "refused");
    }

    #[test]
    fn a_lost_connection_may_come_back_and_a_closed_store_does_not() {
        for error in [SqlxError::PoolTimedOut, SqlxError::WorkerCrashed] {
            assert!(store_error("job", error).is_transient());
        }
        let closed = store_error("job", SqlxError::PoolClosed);
        assert_eq!(closed.kind(), StoreErrorKind::Closed);
        let fault = Fault::Sql(SqlxError::WorkerCrashed);
        assert!(fault.breaks_connection() && fault.hits_everybody());
        let busy = Fault::Sql(SqlxError::Database(Box::new(Said(5, "locked"))));
        assert!(!busy.breaks_connection() && busy.hits_everybody());
        let row = Fault::Row("stored status \"gone\"".to_owned());
        assert!(!row.breaks_connection() && !row.hits_everybody());
    }
}
