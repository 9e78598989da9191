//! The tables, and how they come to be: forward only, one transaction per change.
//!
//! Every change records the oldest library that can still serve the tables after it, so that old
//! and new workers run side by side and only a library below that is refused. Any number of
//! processes may migrate at once: an advisory lock of the transaction lets one through, and the
//! others see that the change is there. A program that only uses the queue verifies the tables and
//! changes nothing.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Error as SqlxError};

use super::connect::Begin;
use super::error::{Fault, lacks_our_tables, store_error};
use super::rows::Columns;
use super::statements::{Statements, bound};
use crate::error::{StoreError, StoreErrorKind};
use crate::failpoint;
pub use crate::store::migration::Migration;
use crate::store::migration::{Applied, next};

/// Returns every change that this library knows, oldest first, for a schema of this name, which is
/// one that [`PostgresOptions::schema`](super::PostgresOptions::schema) takes.
///
/// To make the tables by hand, run `create schema`, `create table <schema>.migrations` as
/// [`printed`] shows them, and these in order.
pub fn migrations(schema: &str) -> Vec<Migration> {
    vec![
        Migration {
            version: 1,
            name: "tables",
            compatible_from: 1,
            sql: bound(include_str!("migrations/0001_tables.sql"), schema),
        },
        Migration {
            version: 2,
            name: "enqueue",
            // A library that does not know the function can do without it.
            compatible_from: 1,
            sql: bound(include_str!("migrations/0002_enqueue.sql"), schema),
        },
    ]
}

/// Returns one script that makes the tables in a new schema of this name and records how far they
/// have come, for people who change their databases themselves. The name is one that
/// [`PostgresOptions::schema`](super::PostgresOptions::schema) takes; it is not checked here.
pub fn printed(schema: &str) -> String {
    let statements = Statements::new(schema, false);
    let mut script = format!(
        "begin;\n{};\n{};\n",
        statements.migrations_schema.text(),
        statements.migrations_table.text()
    );
    for migration in migrations(schema) {
        let Migration {
            version,
            name,
            compatible_from,
            sql,
        } = migration;
        script.push_str(&format!(
            "\n{sql}\ninsert into \"{schema}\".migrations (version, name, compatible_from)\n\
             values ({version}, '{name}', {compatible_from});\n"
        ));
    }
    script.push_str("commit;\n");
    script
}

/// The tables that [`migrations`] make.
const TABLES: [&str; 7] = [
    "meta",
    "jobs",
    "finished_jobs",
    "attempts",
    "idempotency_keys",
    "dedupe_windows",
    "versions",
];

/// What a database holds of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    has_schema: bool,
    applied: Option<Applied>,
}

/// Checks that the tables are there and not too new for this library; changes nothing.
pub(super) async fn verify(
    conn: &mut PgConnection,
    statements: &Statements,
    schema: &str,
) -> Result<(), StoreError> {
    let known = migrations(schema);
    let found = found(conn, statements, schema).await?;
    match next(&known, found.applied)? {
        None => all_there(conn, statements, schema).await,
        Some(_) if found.applied.is_none() => Err(has_no_queue(schema, found.has_schema)),
        Some(next) => Err(refused(format!(
            "the tables in the schema {schema:?} lack the change {} ({}). Open the queue with \
             `.migrate()` to upgrade them",
            next.version, next.name
        ))),
    }
}

fn has_no_queue(schema: &str, has_schema: bool) -> StoreError {
    let (lacks, makes) = match has_schema {
        true => ("", "its tables"),
        false => (
            ": there is no such schema. Check the name",
            "it and its tables",
        ),
    };
    refused(format!(
        "the database has no queue in the schema {schema:?}{lacks}. Open the queue with \
         `.migrate()` to create {makes}, or run the script that \
         `store::postgres::schema::printed` returns"
    ))
}

/// Brings the tables up to what this library knows; does nothing where they are. Refuses a
/// schema in which some of them are missing, or are somebody else's.
pub(super) async fn migrate(
    conn: &mut PgConnection,
    begin: &Begin,
    statements: &Statements,
    schema: &str,
) -> Result<(), StoreError> {
    let known = migrations(schema);
    loop {
        // Also the looking: behind a pooler a statement needs a transaction.
        let mut tx = begin.on(conn).await.map_err(failed)?;
        let seen = found(&mut tx, statements, schema).await?;
        let Some(change) = next(&known, seen.applied)? else {
            return all_there(&mut tx, statements, schema).await;
        };
        let key = lock_key(schema);
        statements
            .migrations_lock
            .query()
            .bind(key)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        let now = found(&mut tx, statements, schema).await?;
        // Otherwise somebody else has made it meanwhile.
        if now.applied == seen.applied {
            apply(&mut tx, statements, schema, now, change).await?;
        }
        tx.commit().await.map_err(failed)?;
        failpoint::point!("migrate.committed");
    }
}

/// Makes one change inside the open transaction.
async fn apply(
    conn: &mut PgConnection,
    statements: &Statements,
    schema: &str,
    found: Found,
    change: &Migration,
) -> Result<(), StoreError> {
    if found.applied.is_none() {
        none_there(conn, statements, schema).await?;
    }
    // Asked for only where it is missing: who may not create schemas may well use one.
    if !found.has_schema {
        let made = statements.migrations_schema.query().execute(&mut *conn);
        made.await.map_err(|error| not_made(schema, error))?;
    }
    let make = async {
        // Asked for only where it is missing, too: Postgres would say a word about it otherwise.
        if found.applied.is_none() {
            statements
                .migrations_table
                .query()
                .execute(&mut *conn)
                .await?;
        }
        failpoint::point!("migrate.begun");
        sqlx::raw_sql(AssertSqlSafe(change.sql.clone()))
            .execute(&mut *conn)
            .await?;
        failpoint::point!("migrate.changed");
        statements
            .migrations_record
            .query()
            .bind(change.version)
            .bind(change.name)
            .bind(change.compatible_from)
            .execute(&mut *conn)
            .await
    };
    make.await.map(drop).map_err(failed)?;
    failpoint::point!("migrate.recorded");
    Ok(())
}

/// The schema is missing and could not be made; a wrong name reads like a lack of rights otherwise.
fn not_made(schema: &str, error: SqlxError) -> StoreError {
    let plain = failed(error);
    let said = format!(
        "there is no schema {schema:?} (check the name), and it could not be created: {}",
        plain.message()
    );
    plain.saying(said)
}

/// A number for the advisory lock: the same for everybody who migrates this schema.
pub(super) fn lock_key(schema: &str) -> i64 {
    // FNV-1a, 64 bits: <https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>.
    let name = format!("queue migrations {schema}");
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    i64::from_ne_bytes(hash.to_ne_bytes())
}

/// Refuses a schema that lacks one of our tables although the list of changes is complete.
async fn all_there(
    conn: &mut PgConnection,
    statements: &Statements,
    schema: &str,
) -> Result<(), StoreError> {
    let taken = taken(conn, statements, schema).await?;
    let missing = TABLES
        .into_iter()
        .find(|name| !taken.contains(&((*name).to_owned(), true)));
    match missing {
        None => Ok(()),
        Some(name) => Err(refused(format!(
            "the table {schema}.{name} is missing, though {schema}.migrations says that it was \
             made. Restore it from a backup, or, to begin with an empty queue, drop the schema"
        ))),
    }
}

/// Refuses to make our tables where something has the name of one already.
async fn none_there(
    conn: &mut PgConnection,
    statements: &Statements,
    schema: &str,
) -> Result<(), StoreError> {
    match taken(conn, statements, schema).await?.first() {
        None => Ok(()),
        Some((name, _)) => Err(refused(format!(
            "the schema {schema} has a {name} already, but no table migrations that tells of it. \
             Give the queue a schema of its own: open it with `?schema=another_name`"
        ))),
    }
}

/// Lists which of our tables' names are taken, and whether by a table.
async fn taken(
    conn: &mut PgConnection,
    statements: &Statements,
    schema: &str,
) -> Result<Vec<(String, bool)>, StoreError> {
    let names: Vec<String> = TABLES.map(str::to_owned).into();
    let read = async {
        let rows = statements
            .tables
            .query()
            .bind(names)
            .bind(schema.to_owned())
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

fn failed(error: SqlxError) -> StoreError {
    store_error("migrate", error)
}

async fn found(
    conn: &mut PgConnection,
    statements: &Statements,
    schema: &str,
) -> Result<Found, StoreError> {
    match read_found(conn, statements, schema).await {
        Ok(found) => Ok(found),
        Err(Fault::Sql(error)) if lacks_our_tables(&error) => Err(refused(format!(
            "the table {schema}.migrations has other columns than this library gave it. If it \
             belongs to another program, give the queue a schema of its own"
        ))
        .caused_by(error)),
        Err(fault) => Err(fault.into_store("migrate")),
    }
}

async fn read_found(
    conn: &mut PgConnection,
    statements: &Statements,
    schema: &str,
) -> Result<Found, Fault> {
    let row = statements
        .migrations_known
        .query()
        .bind(schema.to_owned())
        .fetch_one(&mut *conn)
        .await?;
    let mut columns = Columns::of(&row);
    let (has_schema, has_list) = (columns.take()?, columns.take()?);
    let applied = match has_list {
        false => None,
        true => {
            let row = statements
                .migrations_applied
                .query()
                .fetch_one(&mut *conn)
                .await?;
            let mut columns = Columns::of(&row);
            let newest: Option<i64> = columns.take()?;
            let compatible_from: Option<i64> = columns.take()?;
            newest
                .zip(compatible_from)
                .map(|(newest, compatible_from)| Applied {
                    newest,
                    compatible_from,
                })
        }
    };
    Ok(Found {
        has_schema,
        applied,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_tables_is_what_the_migrations_make() {
        let made: Vec<String> = migrations("jobs")
            .iter()
            .flat_map(|migration| migration.sql.split("create table ").skip(1))
            .filter_map(|rest| rest.split_whitespace().next().map(str::to_owned))
            .collect();
        assert_eq!(made, TABLES.map(|table| format!("\"jobs\".{table}")));
    }

    #[test]
    fn migrations_are_numbered_without_a_gap() {
        let known = migrations("jobs");
        let numbers: Vec<_> = known.iter().map(|change| change.version).collect();
        let expected: Vec<_> = (1..).take(numbers.len()).collect();
        assert_eq!(numbers, expected);
        assert!(
            known
                .iter()
                .all(|change| change.compatible_from <= change.version
                    && !change.sql.contains("{q}"))
        );
    }
}
