//! Changes of a store's tables, and which of them comes next: forward only.
//!
//! Every change records the oldest library that can still serve the tables after it, so that old
//! and new workers run side by side and only a library below that is refused. How a change is
//! made, and by whom if many want to make it, is the store's own affair.

use crate::error::{StoreError, StoreErrorKind};

/// One change of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

/// How far a database has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) newest: i64,
    pub(crate) compatible_from: i64,
}

/// Chooses the next change to make, or refuses tables that are too new for this library.
pub(crate) fn next(
    known: &[Migration],
    applied: Option<Applied>,
) -> Result<Option<&Migration>, StoreError> {
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
}
