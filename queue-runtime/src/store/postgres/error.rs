//! The one place where sqlx's and Postgres's errors become ours.
//!
//! Sorted by what a caller can do: wait and try again (a lost connection, a server that starts or
//! stops, a deadlock, a lock or the disk that is not free), or not. Postgres's own message is kept
//! as the source; it may name tables and columns, and for a few codes a value, so it is for logs.

use std::error::Error;

use sqlx::Error as SqlxError;

use crate::error::{StoreError, StoreErrorKind};

/// The SQLSTATEs that we tell apart (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
mod code {
    pub(super) const UNIQUE: &str = "23505";
    pub(super) const READ_ONLY: &str = "25006";
    pub(super) const NO_TRANSACTION: &str = "25P01";
    pub(super) const FAILED_TRANSACTION: &str = "25P02";
    pub(super) const NO_SUCH_STATEMENT: &str = "26000";
    pub(super) const STATEMENT_EXISTS: &str = "42P05";
    pub(super) const NO_SUCH_DATABASE: &str = "3D000";
    pub(super) const NO_SUCH_SCHEMA: &str = "3F000";
    pub(super) const NO_SUCH_TABLE: &str = "42P01";
    pub(super) const NO_SUCH_COLUMN: &str = "42703";
    pub(super) const NO_SUCH_FUNCTION: &str = "42883";
    pub(super) const NO_RIGHT: &str = "42501";
    pub(super) const PLAN_CHANGED: &str = "0A000";
    pub(super) const SERIALIZATION: &str = "40001";
    pub(super) const DEADLOCK: &str = "40P01";
    pub(super) const DISK_FULL: &str = "53100";
    pub(super) const TOO_MANY_CONNECTIONS: &str = "53300";
    pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub(super) const TIMED_OUT: &str = "57014";
    pub(super) const IDLE_IN_TRANSACTION: &str = "25P03";

    /// Whether a code is about what a row holds: a value, a rule of the tables, or what a trigger
    /// that somebody added says.
    pub(super) fn is_about_values(state: &str) -> bool {
        ["22", "23", "P0"]
            .iter()
            .any(|class| state.starts_with(class))
    }
}

/// What went wrong inside an operation, before it is known whom to tell.
#[derive(Debug)]
pub(super) enum Fault {
    /// Postgres or sqlx refused.
    Sql(SqlxError),
    /// A stored value breaks a rule; says which one.
    Row(String),
    /// What was decided on has changed meanwhile; deciding anew helps.
    Lost,
}

impl From<SqlxError> for Fault {
    fn from(error: SqlxError) -> Self {
        Self::Sql(error)
    }
}

impl Fault {
    /// Tells the caller.
    pub(super) fn into_store(self, operation: &'static str) -> StoreError {
        match self {
            Self::Sql(error) => store_error(operation, error),
            Self::Row(message) => StoreError::new(StoreErrorKind::Corrupt, operation, message),
            Self::Lost => StoreError::new(
                StoreErrorKind::Unavailable,
                operation,
                "others changed the same jobs again and again meanwhile. Try again; a transaction \
                 of yours should be `read committed`",
            ),
        }
    }

    /// Says whether the same transaction, begun anew, may well succeed.
    pub(super) fn is_worth_repeating(&self) -> bool {
        match self {
            Self::Sql(error) => matches!(
                sqlstate(error).as_deref(),
                Some(code::UNIQUE | code::SERIALIZATION | code::DEADLOCK)
            ),
            Self::Lost => true,
            Self::Row(_) => false,
        }
    }

    /// Says whether a part of a transaction, undone and begun anew, may well succeed: others
    /// stored meanwhile what a unique index keeps single, or waited for what the part held.
    pub(super) fn is_undone_with_its_part(&self) -> bool {
        match self {
            Self::Sql(error) => matches!(
                sqlstate(error).as_deref(),
                Some(code::UNIQUE | code::DEADLOCK)
            ),
            Self::Lost => true,
            Self::Row(_) => false,
        }
    }
}

/// Turns an error of sqlx into ours.
pub(super) fn store_error(operation: &'static str, error: SqlxError) -> StoreError {
    let (kind, said) = classify(&error);
    let said = match &error {
        // It names what the right is missing on, and no value.
        SqlxError::Database(denied) if denied.code().as_deref() == Some(code::NO_RIGHT) => {
            format!("{}: {said}", denied.message())
        }
        _ => said.to_owned(),
    };
    let is_about_values = sqlstate(&error).is_some_and(|state| code::is_about_values(&state));
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

/// Says whether the database lacks the tables of the queue.
pub(super) fn lacks_our_tables(error: &SqlxError) -> bool {
    matches!(
        sqlstate(error).as_deref(),
        Some(code::NO_SUCH_TABLE | code::NO_SUCH_SCHEMA | code::NO_SUCH_COLUMN)
    )
}

/// Says whether a statement was refused because no transaction is open.
pub(super) fn lacks_transaction(error: &SqlxError) -> bool {
    sqlstate(error).as_deref() == Some(code::NO_TRANSACTION)
}

/// Says whether a lock of somebody else's was waited for in vain.
pub(super) fn is_lock_timeout(error: &StoreError) -> bool {
    std::error::Error::source(error)
        .and_then(|source| source.downcast_ref())
        .and_then(sqlstate)
        .is_some_and(|state| state == code::LOCK_NOT_AVAILABLE)
}

/// Says whether the connection on which this was said is gone, and others with it maybe.
pub(super) fn ends_connection(error: &SqlxError) -> bool {
    match error {
        SqlxError::Io(_) | SqlxError::WorkerCrashed | SqlxError::Protocol(_) => true,
        SqlxError::Database(said) => said
            .code()
            .is_some_and(|code| code.starts_with("57P") || code.starts_with("08")),
        _ => false,
    }
}

/// Says whether an operation failed with its connection or for want of one, so that the error
/// says nothing about what was asked.
pub(super) fn is_about_connection(error: &StoreError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        match inner.downcast_ref::<SqlxError>() {
            Some(SqlxError::Encode(_)) => return false,
            Some(said @ SqlxError::Database(_)) => return ends_connection(said),
            Some(_) => return true,
            None => cause = inner.source(),
        }
    }
    // The server did not answer in time.
    true
}

/// The five characters by which Postgres names an error.
pub(super) fn sqlstate(error: &SqlxError) -> Option<String> {
    match error {
        SqlxError::Database(said) => said.code().map(|code| code.into_owned()),
        _ => None,
    }
}

/// What is said where a pooler stands in between and nobody has told us.
const POOLER: &str = "a pooler stands before the server, and it keeps nothing of a connection \
                      between two transactions. Open the queue with `behind_pooler(true)`, or \
                      with `?pooler=transaction` in its address";

/// The answer where a connection lacks the settings that it was opened with.
pub(super) fn is_pooled(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unsupported, operation, POOLER)
}

fn classify(error: &SqlxError) -> (StoreErrorKind, &'static str) {
    match error {
        // So pgbouncer refuses the settings that a connection of ours begins with.
        SqlxError::Database(said) if said.message().contains("unsupported startup parameter") => {
            (StoreErrorKind::Unsupported, POOLER)
        }
        _ => match sqlstate(error) {
            Some(state) => of_state(&state),
            None => of_sqlx(error),
        },
    }
}

fn of_state(state: &str) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Corrupt, InvalidInput, Schema, Unavailable, Unsupported};
    match state {
        code::SERIALIZATION | code::DEADLOCK => {
            (Unavailable, "other transactions were in the way. Try again")
        }
        code::LOCK_NOT_AVAILABLE => (
            Unavailable,
            "a row is locked by another transaction for longer than the lock timeout. Keep \
             transactions that touch jobs short",
        ),
        code::TIMED_OUT => (
            Unavailable,
            "the statement took longer than the statement timeout, or somebody cancelled it",
        ),
        code::FAILED_TRANSACTION => (
            InvalidInput,
            "a statement of the transaction has failed before. Roll it back",
        ),
        code::IDLE_IN_TRANSACTION => (Unavailable, "the server ended an idle transaction"),
        code::READ_ONLY => (
            Unavailable,
            "the database is read-only at the moment: it is a standby's, or \
             default_transaction_read_only is on. Connect to the primary",
        ),
        code::DISK_FULL => (
            Unavailable,
            "the server's disk is full, so nothing can be stored. Free space on it",
        ),
        code::TOO_MANY_CONNECTIONS => (
            Unavailable,
            "the server takes no more connections. Lower the pools' sizes, or raise \
             max_connections",
        ),
        code::NO_SUCH_STATEMENT | code::STATEMENT_EXISTS => (Unsupported, POOLER),
        code::NO_SUCH_DATABASE => (
            InvalidInput,
            "the database does not exist. Create it, or name another one",
        ),
        code::NO_SUCH_SCHEMA
        | code::NO_SUCH_TABLE
        | code::NO_SUCH_COLUMN
        | code::NO_SUCH_FUNCTION => (
            Schema,
            "the tables of the queue are missing or of another version. Migrate the database",
        ),
        code::NO_RIGHT => (
            InvalidInput,
            "the role lacks a right. Grant it usage on the queue's schema, select, insert, update, \
             delete on its tables, and usage on its sequence; to migrate, also create on the \
             schema, or on the database if the schema is to be made",
        ),
        // "cached plan must not change result type": a migration ran beside us.
        code::PLAN_CHANGED => (Unavailable, "the tables have just changed. Try again"),
        code::UNIQUE => (
            Corrupt,
            "a stored row stands where none may be, by a unique rule",
        ),
        _ => of_class(&state[..2.min(state.len())]),
    }
}

fn of_class(class: &str) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Corrupt, InvalidInput, Unavailable};
    match class {
        "08" => (
            Unavailable,
            "the connection failed, or a pooler before the server refused it",
        ),
        "28" => (
            InvalidInput,
            "the server does not let this user in. Check user, password and pg_hba.conf",
        ),
        "53" => (Unavailable, "the server has run out of a resource"),
        "57" => (
            Unavailable,
            "the server starts, stops, or ended the connection",
        ),
        "58" => (Unavailable, "the server's system reported a fault"),
        "22" => (InvalidInput, "a value cannot be stored"),
        "23" => (InvalidInput, "a value breaks a rule of the table"),
        "25" => (Unavailable, "the transaction was ended by the server"),
        _ => (Corrupt, "Postgres refused the statement"),
    }
}

fn of_sqlx(error: &SqlxError) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Closed, Corrupt, InvalidInput, Unavailable};
    match error {
        SqlxError::PoolClosed => (Closed, "the store is closed. Open it again"),
        SqlxError::PoolTimedOut => (
            Unavailable,
            "no connection became free in time. Raise `connections`, or look whether the server \
             answers",
        ),
        SqlxError::Io(error) => (Unavailable, of_io(error)),
        SqlxError::WorkerCrashed | SqlxError::Protocol(_) => {
            (Unavailable, "the connection to the server is lost")
        }
        SqlxError::Tls(_) => (
            InvalidInput,
            "a secure connection could not be made. Check sslmode and the certificates; this \
             library needs the feature `tls-rustls` for it",
        ),
        SqlxError::BeginFailed => (Unavailable, "the transaction could not begin"),
        SqlxError::Encode(_) | SqlxError::Configuration(_) => {
            (InvalidInput, "a value cannot be handed to Postgres")
        }
        _ => (Corrupt, "a stored value cannot be read"),
    }
}

/// Why no byte comes through; each of these may be over in a moment.
fn of_io(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            "nothing accepts connections at this host and port. Check both; if the server is \
             starting, try again"
        }
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "there is no way to this host. Check its address and the network, and try again"
        }
        ErrorKind::TimedOut => {
            "the host does not answer. Check its address and the firewalls, and try again"
        }
        // A socket in the file system.
        ErrorKind::NotFound => "there is no such socket. Check the path; is the server running?",
        // The system's resolver has no kind of its own; these are the standard library's words.
        _ if error.to_string().contains("failed to lookup address") => {
            "the host's name cannot be resolved. Check its spelling; if the name service was \
             away, try again"
        }
        _ => "the connection to the server is lost. Try again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(state: &str, kind: StoreErrorKind, words: &str) {
        let (found, said) = of_state(state);
        assert_eq!(found, kind, "for {state}: {said}");
        assert!(said.contains(words), "for {state}: {said}");
    }

    #[test]
    fn sqlstates_are_sorted_by_what_a_caller_can_do() {
        use StoreErrorKind::{Corrupt, InvalidInput, Schema, Unavailable, Unsupported};
        for passing in [
            "57P01", "57P02", "57P03", "08000", "08003", "08006", "08P01", "40001", "40P01",
            "25006", "53300", "53200", "53100", "55P03", "57014", "58030", "25P03", "0A000",
        ] {
            check(passing, Unavailable, "");
        }
        check("53100", Unavailable, "disk is full");
        check("25006", Unavailable, "primary");
        check("28P01", InvalidInput, "password");
        check("28000", InvalidInput, "pg_hba.conf");
        check("25P02", InvalidInput, "Roll it back");
        check("3D000", InvalidInput, "does not exist");
        check("42501", InvalidInput, "lacks a right");
        check("42P01", Schema, "Migrate");
        check("3F000", Schema, "Migrate");
        check("26000", Unsupported, "behind_pooler");
        check("42P05", Unsupported, "behind_pooler");
        check("22021", InvalidInput, "cannot be stored");
        check("23514", InvalidInput, "rule of the table");
        check("23505", Corrupt, "unique rule");
        check("XX001", Corrupt, "refused");
        check("4", Corrupt, "refused");
    }

    #[test]
    fn a_lost_connection_may_come_back_and_a_closed_store_does_not() {
        for error in [SqlxError::PoolTimedOut, SqlxError::WorkerCrashed] {
            assert!(store_error("job", error).is_transient());
        }
        let closed = store_error("job", SqlxError::PoolClosed);
        assert_eq!(closed.kind(), StoreErrorKind::Closed);
    }
}
