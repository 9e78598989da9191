//! The tables, and how they come to be: forward only, one transaction per change.
//!
//! Every change records the oldest library that can still serve the tables after it, so that old
//! and new workers run side by side and only a library below that is refused. Any number of
//! processes may open a new file at once: each change is made under the write lock by whoever
//! comes first, and the others see that it is there.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor};

use super::error::{Fault, lacks_our_tables, store_error};
use super::rows::{Columns, json};
use super::statements::{PREFIX, Statements};
use crate::error::{StoreError, StoreErrorKind};
use crate::failpoint;
pub use crate::store::migration::Migration;
use crate::store::migration::{Applied, next};

/// Returns every change that this library knows, oldest first.
pub fn migrations() -> Vec<Migration> {
    let bound = |file: &str| file.replace("{q}", PREFIX);
    vec![Migration {
        version: 1,
        name: "tables",
        compatible_from: 1,
        sql: bound(include_str!("migrations/0001_tables.sql")),
    }]
}

/// The tables that [`migrations`] make, without their prefix.
const TABLES: [&str; 7] = [
    "meta",
    "jobs",
    "finished_jobs",
    "attempts",
    "idempotency_keys",
    "dedupe_windows",
    "versions",
];

/// Brings the tables up to what this library knows; does nothing where they are. Refuses a
/// database in which some of them are missing, or are somebody else's.
pub(super) async fn migrate(
    conn: &mut SqliteConnection,
    statements: &Statements,
) -> Result<(), StoreError> {
    let known = migrations();
    loop {
        let applied = applied(conn, statements).await?;
        let Some(next) = next(&known, applied)? else {
            return all_there(conn, statements).await;
        };
        conn.execute("begin immediate")
            .await
            .map_err(|e| store_error("migrate", e))?;
        match apply(conn, statements, next, applied).await {
            Ok(()) => conn
                .execute("commit")
                .await
                .map_err(|e| store_error("migrate", e))?,
            Err(error) => {
                conn.execute("rollback")
                    .await
                    .map_err(|e| store_error("migrate", e))?;
                return Err(error);
            }
        };
        failpoint::point!("migrate.committed");
    }
}

/// Makes one change inside the open transaction, unless somebody else has made it meanwhile.
async fn apply(
    conn: &mut SqliteConnection,
    statements: &Statements,
    migration: &Migration,
    seen: Option<Applied>,
) -> Result<(), StoreError> {
    if applied(conn, statements).await? != seen {
        return Ok(());
    }
    if seen.is_none() {
        none_there(conn, statements).await?;
    }
    let change = async {
        statements
            .migrations_table
            .query()
            .execute(&mut *conn)
            .await?;
        failpoint::point!("migrate.begun");
        sqlx::raw_sql(AssertSqlSafe(migration.sql.clone()))
            .execute(&mut *conn)
            .await?;
        failpoint::point!("migrate.changed");
        statements
            .migrations_record
            .query()
            .bind(migration.version)
            .bind(migration.name)
            .bind(migration.compatible_from)
            .execute(&mut *conn)
            .await
    };
    match change.await {
        Ok(_) => {
            failpoint::point!("migrate.recorded");
            Ok(())
        }
        Err(error) => Err(store_error("migrate", error)),
    }
}

/// Refuses a database that lacks one of our tables although the list of changes is complete.
async fn all_there(conn: &mut SqliteConnection, statements: &Statements) -> Result<(), StoreError> {
    let taken = taken(conn, statements).await?;
    let missing = TABLES
        .iter()
        .map(|table| format!("{PREFIX}{table}"))
        .find(|name| !taken.contains(&(name.clone(), true)));
    match missing {
        None => Ok(()),
        Some(name) => Err(refused(format!(
            "the table {name} is missing, though {PREFIX}migrations says that it was made. \
             Restore the file from a backup, or, to begin with an empty queue, drop what is left \
             under names that start with {PREFIX}"
        ))),
    }
}

/// Refuses to make our tables where something has the name of one already.
async fn none_there(
    conn: &mut SqliteConnection,
    statements: &Statements,
) -> Result<(), StoreError> {
    match taken(conn, statements).await?.first() {
        None => Ok(()),
        Some((name, _)) => Err(refused(format!(
            "the database has a {name} already, but no {PREFIX}migrations that tells of it. If it \
             belongs to another program, give the queue a file of its own; if it is a queue that \
             has lost a table, restore the file from a backup"
        ))),
    }
}

/// Lists which of our tables' names are taken, and whether by a table.
async fn taken(
    conn: &mut SqliteConnection,
    statements: &Statements,
) -> Result<Vec<(String, bool)>, StoreError> {
    let names = TABLES.map(|table| format!("{PREFIX}{table}"));
    let read = async {
        let rows = statements
            .tables
            .query()
            .bind(json(&names))
            .fetch_all(&mut *conn)
            .await?;
        rows.iter()
            .map(|row| {
                let mut columns = Columns::of(row);
                Ok((columns.take()?, columns.take()?))
            })
            .collect::<Result<Vec<_>, Fault>>()
    };
    read.await.map_err(|fault| fault.into_store("migrate"))
}

fn refused(rule: String) -> StoreError {
    StoreError::new(StoreErrorKind::Schema, "migrate", rule)
}

async fn applied(
    conn: &mut SqliteConnection,
    statements: &Statements,
) -> Result<Option<Applied>, StoreError> {
    match read_applied(conn, statements).await {
        Ok(applied) => Ok(applied),
        Err(Fault::Sql(error)) if lacks_our_tables(&error) => Err(refused(format!(
            "the table {PREFIX}migrations has other columns than this library gave it. If it \
             belongs to another program, give the queue a file of its own"
        ))
        .caused_by(error)),
        Err(fault) => Err(fault.into_store("migrate")),
    }
}

async fn read_applied(
    conn: &mut SqliteConnection,
    statements: &Statements,
) -> Result<Option<Applied>, Fault> {
    let row = statements
        .migrations_known
        .query()
        .fetch_one(&mut *conn)
        .await?;
    if !Columns::of(&row).take::<bool>()? {
        return Ok(None);
    }
    let row = statements
        .migrations_applied
        .query()
        .fetch_one(&mut *conn)
        .await?;
    let mut columns = Columns::of(&row);
    let newest: Option<i64> = columns.take()?;
    let compatible_from: Option<i64> = columns.take()?;
    Ok(newest
        .zip(compatible_from)
        .map(|(newest, compatible_from)| Applied {
            newest,
            compatible_from,
        }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_tables_is_what_the_migrations_make() {
        let made: Vec<String> = migrations()
            .iter()
            .flat_map(|migration| migration.sql.split("create table ").skip(1))
            .filter_map(|rest| rest.split_whitespace().next().map(str::to_owned))
            .collect();
        assert_eq!(made, TABLES.map(|table| format!("{PREFIX}{table}")));
    }

    #[test]
    fn migrations_are_numbered_without_a_gap() {
        let numbers: Vec<_> = migrations().iter().map(|m| m.version).collect();
        let expected: Vec<_> = (1..).take(numbers.len()).collect();
        assert_eq!(numbers, expected);
        assert!(
            migrations()
                .iter()
                .all(|m| m.compatible_from <= m.version && !m.sql.contains("{q}"))
        );
    }
}
