//! One stream of events that logs, metrics and tests all read, so that they cannot disagree.

mod log;

use tokio::sync::broadcast;

use crate::job::JobEvent;

/// Events that a slow listener may fall behind before it misses the oldest.
const LISTENER_LAG_MAX: usize = 4_096;

/// Where events are reported. Clones share one stream.
#[derive(Clone, Debug)]
pub struct Events(broadcast::Sender<JobEvent>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(LISTENER_LAG_MAX))
    }

    /// Logs an event and hands it to everybody who listens.
    pub(crate) fn report(&self, event: JobEvent) {
        log::event(&event);
        // Only an empty audience makes this fail.
        let _ = self.0.send(event);
    }

    /// Listens from now on. A listener that falls behind by more than 4,096 events is told how
    /// many it missed.
    pub fn listen(&self) -> broadcast::Receiver<JobEvent> {
        self.0.subscribe()
    }
}
