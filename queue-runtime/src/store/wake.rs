//! The hint that a job may have become claimable: a counter that listeners wait on.
//!
//! Lost or doubled hints do no harm, since a worker also polls.

use tokio::sync::watch;

/// The sending side, held by a store.
#[derive(Debug)]
pub struct Wake(watch::Sender<u64>);

impl Wake {
    /// Starts with no hint given.
    pub fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Gives a hint to every listener.
    pub fn notify(&self) {
        self.0.send_modify(|hints| *hints = hints.wrapping_add(1));
    }

    /// Adds a listener that hears the hints from now on.
    pub fn listen(&self) -> WakeListener {
        WakeListener(self.0.subscribe())
    }

    /// Counts the hints given so far.
    #[cfg(all(test, feature = "postgres"))]
    pub(crate) fn hints(&self) -> u64 {
        *self.0.borrow()
    }

    /// Says whether anybody listens.
    pub fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

impl Default for Wake {
    fn default() -> Self {
        Self::new()
    }
}

/// The listening side, held by a worker.
#[derive(Clone, Debug)]
pub struct WakeListener(watch::Receiver<u64>);

impl WakeListener {
    /// Waits for a hint that was not heard yet; at once if one came since the last call. Waits
    /// for ever once the store is gone. Dropping the future loses no hint.
    pub async fn wait(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
