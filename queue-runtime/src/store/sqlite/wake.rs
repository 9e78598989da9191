//! When to look for commits of others: another process, the heartbeat, a transaction of the
//! application's.
//!
//! What the writer itself commits is announced by the writer. For the rest, while somebody
//! listens, it looks every [`LOOK_EVERY`] whether SQLite's `data_version` has moved. It asks its
//! own connection, which does not count its own commits; on any other connection each of them
//! would wake everybody for nothing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::seam::Seam;
use crate::store::Wake;

/// How often to look; one look costs about 20 µs.
const LOOK_EVERY: Duration = Duration::from_millis(75);

/// The pause until the next look, if anybody listens.
#[derive(Default)]
pub(super) struct Look(Option<BoxFuture<'static, ()>>);

impl Look {
    /// Begins a pause if somebody listens and none runs.
    pub(super) fn arm(&mut self, wake: &Wake, seam: &Arc<dyn Seam>) {
        if self.0.is_none() && wake.has_listeners() {
            self.0 = Some(seam.sleep(LOOK_EVERY));
        }
    }

    /// Waits until it is time to look; for ever if there is no pause to end.
    pub(super) async fn wait(&mut self) {
        match &mut self.0 {
            Some(pause) => pause.await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}
