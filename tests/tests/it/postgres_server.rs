//! A Postgres server of a test's own, to stop and to kill; and a bound on waiting for what a real
//! server does.

use std::time::Duration;

use queue_testkit::conformance::{PostgresFixture, is_skipped};
use xtask::servers::{self, Postgres};

/// Far above what anything here takes; a test that waits longer has lost its way.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits for an event.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(WAIT_MAX, event).await {
        Ok(happened) => happened,
        Err(_) => panic!("{what} did not happen in {WAIT_MAX:?}"),
    }
}

/// Starts a server that a test may stop and kill; `None` where there are no servers.
pub(crate) async fn own_server() -> Option<Postgres> {
    if is_skipped(&PostgresFixture::new()) {
        return None;
    }
    let start = || Postgres::start(servers::Options::default());
    let started = tokio::task::spawn_blocking(start).await;
    Some(started.expect("no panic").expect("a server starts"))
}

/// Does something to a server that takes its time, while everything else goes on.
pub(crate) async fn with_server(
    mut server: Postgres,
    act: fn(&mut Postgres) -> anyhow::Result<()>,
) -> Postgres {
    let acted = tokio::task::spawn_blocking(move || act(&mut server).map(|()| server)).await;
    acted.expect("no panic").expect("the server obeys")
}
