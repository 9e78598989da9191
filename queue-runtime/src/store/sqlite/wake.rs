//! Notices commits of others: another process, the heartbeat, a transaction of the user's.
//!
//! What the writer itself commits is announced by the writer. For the rest, while somebody
//! listens, the writer is asked every [`LOOK_EVERY`] whether SQLite's `data_version` has moved;
//! the writer's own connection is the one to ask, since it does not count its own commits, which
//! would wake everybody for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::writer::Op;
use crate::seam::Seam;
use crate::store::{Wake, WakeListener};

/// How often to look; one look costs about 20 µs.
const LOOK_EVERY: Duration = Duration::from_millis(75);

/// The store's side of waking.
#[derive(Debug)]
pub(super) struct Watch {
    wake: Arc<Wake>,
    running: Arc<AtomicBool>,
}

impl Watch {
    /// Starts with nobody listening, so without looking.
    pub(super) fn new(wake: Arc<Wake>) -> Self {
        Self {
            wake,
            running: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Adds a listener, and starts to look if it is the first.
    pub(super) fn listen(
        &self,
        seam: &Arc<dyn Seam>,
        writer: Option<mpsc::Sender<Op>>,
    ) -> WakeListener {
        let listener = self.wake.listen();
        if let Some(writer) = writer
            && !self.running.swap(true, Ordering::SeqCst)
        {
            let look = look(
                Arc::clone(&self.wake),
                Arc::clone(&self.running),
                Arc::clone(seam),
                writer.downgrade(),
            );
            // Ends by itself, so nobody needs its handle.
            drop(seam.spawn(Box::pin(look)));
        }
        listener
    }
}

/// Asks the writer to look until nobody listens or the store is gone.
async fn look(
    wake: Arc<Wake>,
    running: Arc<AtomicBool>,
    seam: Arc<dyn Seam>,
    writer: mpsc::WeakSender<Op>,
) {
    loop {
        seam.sleep(LOOK_EVERY).await;
        let Some(writer) = writer.upgrade() else {
            return;
        };
        if !wake.has_listeners() {
            running.store(false, Ordering::SeqCst);
            // A listener that came in between saw the task running.
            if !wake.has_listeners() || running.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        // If the writer has a full queue it is busy, and so are its listeners.
        let _ = writer.try_send(Op::Peek);
    }
}
