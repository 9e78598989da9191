//! Servers of a test's own, and errors without secrets.

use std::error::Error;

use queue_runtime::error::{OpenError, StoreError};
use queue_runtime::store::postgres::{PostgresOptions, PostgresStore};
use xtask::servers::{Options, Postgres, find};

/// What stands for the password in every address here.
pub(crate) const SECRET: &str = "hunter2";

/// Starts a server; `None` if the test is to be skipped because there is none on this machine.
pub(crate) fn server(settings: &[(&str, &str)]) -> Option<Postgres> {
    if is_missing(find::postgres(None).map(drop)) {
        return None;
    }
    let settings = settings.iter();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let options = Options {
        settings: settings.map(owned).collect(),
        ..Options::default()
    };
    Some(Postgres::start(options).expect("the server starts"))
}

/// Says whether a program is missing, and prints it; where `CI` is set that is a failure.
#[allow(clippy::print_stderr, reason = "a skipped test is silent otherwise")]
pub(crate) fn is_missing(found: anyhow::Result<()>) -> bool {
    let Err(why) = found else { return false };
    assert!(std::env::var_os("CI").is_none(), "{why:#}");
    eprintln!("skipped: {why:#}");
    true
}

pub(crate) fn options(url: &str) -> PostgresOptions {
    PostgresOptions::new(url).expect("a valid address")
}

/// What opening is refused with, of which no part holds the password.
pub(crate) async fn refusal(options: PostgresOptions) -> StoreError {
    let shown = format!("{options:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    match PostgresStore::open(options).await {
        Err(OpenError::Store(error)) => {
            is_discreet(&error);
            error
        }
        other => panic!("the store refuses, not {other:?}"),
    }
}

/// Looks for the password in an error and in all that caused it (O-113).
fn is_discreet(error: &dyn Error) {
    let mut next = Some(error);
    while let Some(error) = next {
        let (said, shown) = (error.to_string(), format!("{error:?}"));
        assert!(
            !said.contains(SECRET) && !shown.contains(SECRET),
            "{said}: {shown}"
        );
        next = error.source();
    }
}
