//! The stores that the suites run on, and what a run says about them.
//!
//! Memory and SQLite live in the test process. A store that needs a server joins this table with
//! the way to find, start and stop it; until then there is nothing to start.

/// Stores by the name that tests carry in their path: `conformance sqlite::a_late_settle_…`.
const STORES: [&str; 2] = ["memory", "sqlite"];

/// One line for people: each store with the number of tests that ran on it.
///
/// Counted from the names of tests that ran, so a store that no test reached is seen at once.
pub(crate) fn that_ran(tests: &[String]) -> String {
    let counted: Vec<String> = STORES
        .iter()
        .map(
            |store| match tests.iter().filter(|test| names(test, store)).count() {
                0 => format!("{store} (no test)"),
                1 => format!("{store} (1 test)"),
                count => format!("{store} ({count} tests)"),
            },
        )
        .collect();
    format!("stores: {}", counted.join(", "))
}

/// A store that no test reached, if there is one.
pub(crate) fn untested(tests: &[String]) -> Option<&'static str> {
    STORES
        .into_iter()
        .find(|store| !tests.iter().any(|test| names(test, store)))
}

fn names(test: &str, store: &str) -> bool {
    test.split("::").any(|segment| segment == store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_no_test_reached_is_named() {
        let tests = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(untested(&tests(&["memory::a"])), Some("sqlite"));
        assert_eq!(untested(&tests(&["memory::a", "it::sqlite::b"])), None);
    }

    #[test]
    fn a_store_counts_only_where_a_test_that_ran_names_it() {
        let check = |tests: &[&str], expected: &str| {
            let tests: Vec<String> = tests.iter().map(|&test| test.to_owned()).collect();
            assert_eq!(that_ran(&tests), expected);
        };
        check(&[], "stores: memory (no test), sqlite (no test)");
        check(
            &["tidy::memory_is_a_word"],
            "stores: memory (no test), sqlite (no test)",
        );
        check(
            &[
                "memory::a",
                "conformance::memory::b",
                "store::sqlite::rows::c",
            ],
            "stores: memory (2 tests), sqlite (1 test)",
        );
    }
}
