//! The stores that the suites run on, and what a run says about them.
//!
//! A store without a server lives in the test process. One with a server has a row that says how
//! to start it, and in which environment variable the tests find its URL.

use anyhow::Result;
use xtask::servers::{Options, PgBouncer, PoolMode, Postgres, install};

pub(crate) struct Store {
    /// The name that tests carry in their path: `conformance sqlite::a_late_settle_…`.
    pub(crate) name: &'static str,
    pub(crate) server: Option<Server>,
}

pub(crate) struct Server {
    /// Where the tests find the server's URL.
    pub(crate) variable: &'static str,
    /// Finds and starts one; it stops when it is dropped.
    pub(crate) start: fn() -> Result<Box<dyn Serving>>,
}

/// A server that stops when it is dropped.
pub(crate) trait Serving {
    fn url(&self) -> String;
}

/// Where the tests find the URL of a Postgres server.
pub(crate) const POSTGRES_URL: &str = "QUEUE_TEST_POSTGRES_URL";

/// Where the tests find the URL of a pooler in transaction mode.
pub(crate) const PGBOUNCER_URL: &str = "QUEUE_TEST_PGBOUNCER_URL";

pub(crate) const STORES: [Store; 4] = [
    Store {
        name: "memory",
        server: None,
    },
    Store {
        name: "sqlite",
        server: None,
    },
    Store {
        name: "postgres",
        server: Some(Server {
            variable: POSTGRES_URL,
            start: || {
                install::postgres(None)?;
                Ok(Box::new(Postgres::start(Options::default())?))
            },
        }),
    },
    Store {
        name: "postgres_pooled",
        server: Some(Server {
            variable: PGBOUNCER_URL,
            start: || {
                install::postgres(None)?;
                install::pgbouncer()?;
                Ok(Box::new(Pooled::start()?))
            },
        }),
    },
];

/// A pooler and the server behind it, which nobody else has.
struct Pooled {
    // Before the server: the pooler ends first.
    pooler: PgBouncer,
    _server: Postgres,
}

impl Pooled {
    fn start() -> Result<Self> {
        let server = Postgres::start(Options::default())?;
        // More than the suites' stores together have connections.
        let clients = [("max_client_conn", "1000")];
        Ok(Self {
            pooler: PgBouncer::start_with(&server, PoolMode::Transaction, &clients)?,
            _server: server,
        })
    }
}

impl Serving for Pooled {
    fn url(&self) -> String {
        self.pooler.url()
    }
}

impl Serving for Postgres {
    fn url(&self) -> String {
        Postgres::url(self)
    }
}

/// A store that a run leaves out, and why.
#[derive(Debug, PartialEq)]
pub(crate) struct Skipped {
    pub(crate) store: &'static str,
    pub(crate) reason: String,
}

/// Whether a store of this name exists and needs a server.
pub(crate) fn has_server(name: &str) -> bool {
    STORES
        .iter()
        .any(|store| store.name == name && store.server.is_some())
}

/// For people: each store with the number of tests that ran on it, then why a store was skipped.
///
/// Counted from the names of tests that ran, so a store that no test reached is seen at once. The
/// tests of a skipped store ran without doing anything, and are not counted.
pub(crate) fn that_ran(tests: &[String], skipped: &[Skipped]) -> String {
    let counted: Vec<String> = STORES
        .iter()
        .map(|Store { name, .. }| {
            let count = tests.iter().filter(|test| names(test, name)).count();
            match (is_among(skipped, name), count) {
                (true, _) => format!("{name} (skipped)"),
                (false, 0) => format!("{name} (no test)"),
                (false, 1) => format!("{name} (1 test)"),
                (false, count) => format!("{name} ({count} tests)"),
            }
        })
        .collect();
    let mut lines = format!("stores: {}", counted.join(", "));
    for Skipped { store, reason } in skipped {
        lines.push_str(&format!("\n{store}: skipped, {reason}"));
    }
    lines
}

/// A store that no test reached although it was not skipped, if there is one.
pub(crate) fn untested(tests: &[String], skipped: &[Skipped]) -> Option<&'static str> {
    STORES
        .into_iter()
        .map(|store| store.name)
        .filter(|store| !is_among(skipped, store))
        .find(|store| !tests.iter().any(|test| names(test, store)))
}

fn is_among(skipped: &[Skipped], name: &str) -> bool {
    skipped.iter().any(|skipped| skipped.store == name)
}

/// The chores' own tests of how servers are started stand in modules of the servers' names, and
/// reach no store.
fn names(test: &str, store: &str) -> bool {
    !test.starts_with("servers::") && test.split("::").any(|segment| segment == store)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(tests: &[&str]) -> Vec<String> {
        tests.iter().map(|&test| test.to_owned()).collect()
    }

    fn without_postgres() -> Vec<Skipped> {
        vec![Skipped {
            store: "postgres",
            reason: "no server".to_owned(),
        }]
    }

    #[test]
    fn a_store_that_no_test_reached_is_named_unless_it_was_skipped() {
        let check = |tests: &[&str], skipped: &[Skipped], expected| {
            assert_eq!(untested(&owned(tests), skipped), expected, "{tests:?}");
        };
        check(&["memory::a"], &[], Some("sqlite"));
        check(&["memory::a", "it::sqlite::b"], &[], Some("postgres"));
        check(
            &["memory::a", "sqlite::b", "postgres_pooled::d"],
            &without_postgres(),
            None,
        );
        let all = [
            "memory::a",
            "sqlite::b",
            "postgres::c",
            "postgres_pooled::d",
        ];
        check(&all, &[], None);
        check(&all[..3], &[], Some("postgres_pooled"));
    }

    #[test]
    fn a_store_counts_only_where_a_test_that_ran_names_it() {
        let check = |tests: &[&str], expected: &str| {
            assert_eq!(that_ran(&owned(tests), &[]), expected);
        };
        let none = "stores: memory (no test), sqlite (no test), postgres (no test), \
                    postgres_pooled (no test)";
        check(&[], none);
        check(&["tidy::memory_is_a_word"], none);
        check(&["servers::postgres::tests::a"], none);
        check(
            &[
                "memory::a",
                "conformance::memory::b",
                "store::sqlite::rows::c",
            ],
            "stores: memory (2 tests), sqlite (1 test), postgres (no test), \
             postgres_pooled (no test)",
        );
    }

    #[test]
    fn the_tests_of_a_skipped_store_are_not_counted_and_the_reason_is_told() {
        let tests = owned(&["memory::a", "postgres::a", "postgres::b"]);
        assert_eq!(
            that_ran(&tests, &without_postgres()),
            "stores: memory (1 test), sqlite (no test), postgres (skipped), \
             postgres_pooled (no test)\n\
             postgres: skipped, no server"
        );
    }
}
