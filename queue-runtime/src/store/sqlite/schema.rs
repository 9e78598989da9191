//! The tables, and how they come to be: forward only, one transaction per change.
//!
//! Every change records the oldest library that can still serve the tables after it, so that old
//! and new workers run side by side and only a library below that is refused. Any number of
//! processes may open a new file at once: each change is made under the write lock by whoever
//! comes first, and the others see that it is there.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor};

use super::error::{Fault, store_error};
use super::rows::Columns;
use super::statements::{PREFIX, Statements};
use crate::error::{StoreError, StoreErrorKind};

/// One change of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number, from 1 without a gap.
    pub version: i64,
    /// What it is about.
    pub name: &'static str,
    /// The oldest library, by its newest migration, that can serve the tables after it.
    pub compatible_from: i64,
    /// The statements, ready to be printed or run.
    pub sql: String,
}

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

/// How far a database has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Applied {
    newest: i64,
    compatible_from: i64,
}

/// Brings the tables up to what this library knows; does nothing where they are.
pub(super) async fn migrate(
    conn: &mut SqliteConnection,
    statements: &Statements,
) -> Result<(), StoreError> {
    let known = migrations();
    let fault = |fault: Fault| fault.into_store("migrate");
    loop {
        let applied = applied(conn, statements).await.map_err(fault)?;
        let Some(next) = next(&known, applied)? else {
            return Ok(());
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
                return Err(fault(error));
            }
        };
    }
}

/// Makes one change inside the open transaction, unless somebody else has made it meanwhile.
async fn apply(
    conn: &mut SqliteConnection,
    statements: &Statements,
    migration: &Migration,
    seen: Option<Applied>,
) -> Result<(), Fault> {
    if applied(conn, statements).await? != seen {
        return Ok(());
    }
    statements
        .migrations_table
        .query()
        .execute(&mut *conn)
        .await?;
    sqlx::raw_sql(AssertSqlSafe(migration.sql.clone()))
        .execute(&mut *conn)
        .await?;
    statements
        .migrations_record
        .query()
        .bind(migration.version)
        .bind(migration.name)
        .bind(migration.compatible_from)
        .execute(&mut *conn)
        .await?;
    Ok(())
}

async fn applied(
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

/// Chooses the next change to make, or refuses tables that are too new for this library.
fn next(known: &[Migration], applied: Option<Applied>) -> Result<Option<&Migration>, StoreError> {
    let ours = known.last().map_or(0, |newest| newest.version);
    let Some(applied) = applied else {
        return Ok(known.first());
    };
    if applied.compatible_from > ours {
        let Applied {
            newest,
            compatible_from,
        } = applied;
        return Err(StoreError::new(
            StoreErrorKind::Schema,
            "migrate",
            format!(
                "this library knows schema {ours}, the database has schema {newest}, which needs \
                 a library of schema {compatible_from} at least. Update this program"
            ),
        ));
    }
    Ok(known
        .iter()
        .find(|migration| migration.version > applied.newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(version: i64, compatible_from: i64) -> Migration {
        Migration {
            version,
            name: "a change",
            compatible_from,
            sql: String::new(),
        }
    }

    /// What a library that knows schemas 1 to `ours` does with a database.
    fn check(ours: i64, newest: i64, compatible_from: i64, expected: &str) {
        let known: Vec<_> = (1..=ours).map(|version| change(version, 1)).collect();
        let applied = Some(Applied {
            newest,
            compatible_from,
        });
        let said = match next(&known, applied) {
            Ok(Some(migration)) => format!("apply {}", migration.version),
            Ok(None) => "serve".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expected, "for {ours} on {newest}/{compatible_from}");
    }

    #[test]
    fn a_library_below_the_oldest_compatible_one_is_refused() {
        check(2, 1, 1, "apply 2");
        check(2, 2, 1, "serve");
        check(2, 9, 2, "serve");
        check(
            2,
            9,
            3,
            "migrate: this library knows schema 2, the database has schema 9, which needs a \
             library of schema 3 at least. Update this program",
        );
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
