//! Lets others of this process have the write lock while the writer is busy.
//!
//! SQLite's lock has no queue: whoever waits for it looks again after a pause that grows to 100
//! ms, and a busy writer frees the lock for a fraction of a millisecond between two transactions.
//! So whoever wants the lock says so here, and the writer keeps off until they have had it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::seam::Seam;

/// How long the writer keeps off at most: a little more than SQLite's longest pause, so that
/// whoever waits has looked meanwhile.
const GIVE_WAY_MAX: Duration = Duration::from_millis(150);

/// Who wants the write lock beside the writer.
#[derive(Debug, Default)]
pub(super) struct Turn {
    waiting: AtomicUsize,
    fewer: Notify,
}

/// Somebody wants the lock until this is dropped.
#[derive(Debug)]
pub(super) struct Asking(Arc<Turn>);

impl Turn {
    /// Says that the lock is wanted.
    pub(super) fn ask(self: &Arc<Self>) -> Asking {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Asking(Arc::clone(self))
    }

    /// Waits until nobody wants the lock, or they had their chance.
    pub(super) async fn give_way(&self, seam: &dyn Seam) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut bound = seam.sleep(GIVE_WAY_MAX);
        loop {
            let fewer = self.fewer.notified();
            if self.waiting.load(Ordering::SeqCst) == 0 {
                return;
            }
            tokio::select! {
                // Who still waits then is held up by somebody else.
                () = &mut bound => return,
                () = fewer => {}
            }
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.fewer.notify_waiters();
    }
}
