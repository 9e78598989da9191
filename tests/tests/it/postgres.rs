//! What a queue on Postgres says to operators when it is opened.

use std::sync::Arc;
use std::time::Duration;

use queue_runtime::seam::Seam;
use queue_runtime::store::Store as _;
use queue_runtime::store::postgres::{PostgresOptions, PostgresStore};
use queue_testkit::TestSeam;
use tracing::Level;

use crate::logs::Log;
use crate::world::Server;

/// A queue on a machine whose clock stands at another time than the server's is warned of it, by
/// name and number; its jobs do not care.
#[tokio::test]
async fn a_clock_that_is_not_the_servers_is_told_when_the_queue_is_opened() {
    let Some(server) = Server::new() else { return };
    let (log, _guard) = Log::start();
    let options = PostgresOptions::new(server.url())
        .expect("valid")
        .migrate(true);
    let store = PostgresStore::open(options.clone()).await;
    store.expect("opened").close().await;
    let warned = || {
        let mut lines = log.lines();
        lines.retain(|line| line.level == Level::WARN && line.message().contains("clock"));
        lines
    };
    assert_eq!(warned(), [], "this machine's clock is the server's");

    // A clock that a test moves stands years away.
    let seam: Arc<dyn Seam> = TestSeam::new(1).shared();
    let store = PostgresStore::open(options.seam(seam)).await;
    store.expect("opened").close().await;

    let lines = warned();
    assert_eq!(lines.len(), 1, "{:?}", log.lines());
    assert!(
        lines[0]
            .message()
            .contains("the queue goes by the server's")
    );
    let off: u64 = lines[0].fields["difference_ms"].parse().expect("a number");
    assert!(Duration::from_millis(off) > Duration::from_secs(5), "{off}");
    assert!(
        lines[0].fields["server"].contains("@127.0.0.1"),
        "{lines:?}"
    );
    server.end().await;
}
