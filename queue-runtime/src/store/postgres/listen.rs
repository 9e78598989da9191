//! Hears what other processes tell, and what callers' transactions do: one task per store that
//! keeps a connection of its own and never gives up.
//!
//! A connection may be dead without an error: cut in between, it stays open here for hours. So
//! the task sends itself a notification over another connection every [`PROBE_EVERY`] and
//! expects to hear it; if it does not, the connection is as good as lost. A lost one is opened
//! anew, after a pause that grows while that fails, and each new one gives a hint, since others
//! may have been missed. Meanwhile workers poll: that is slower and nothing else.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::ear::Ear;
use super::notify::Line;
use super::wake::Names;
use crate::job::Backoff;
use crate::rules::backoff;
use crate::store::Wake;

/// How often a connection that works is tried.
const PROBE_EVERY: Duration = Duration::from_secs(15);

/// How long what was sent may be on its way.
const PROBE_MAX: Duration = Duration::from_secs(4);

/// How soon a probe that could not be sent is sent again; it says nothing about the connection.
const PROBE_AGAIN: Duration = Duration::from_secs(3);

/// How long the end of a store may wait for the task.
const END_MAX: Duration = Duration::from_secs(2);

/// The pause before a connection is opened anew.
const PAUSE: Backoff = Backoff::Exponential {
    base: Duration::from_millis(100),
    max: Duration::from_secs(3),
    jitter_percent: 50,
};

/// How well a store hears of the jobs of other processes; see
/// [`PostgresStore::listening`](super::PostgresStore::listening).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listening {
    /// Whether notifications arrive, as far as is known.
    pub is_hearing: bool,
    /// How often they have stopped arriving since the store was opened.
    pub losses: u64,
}

/// Listens once somebody wants to hear.
pub(super) struct Listener {
    listening: Arc<Task>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What the task works with.
struct Task {
    line: Line,
    names: Arc<Names>,
    wake: Arc<Wake>,
    closing: CancellationToken,
    state: watch::Sender<Listening>,
    /// Tries in a row that came to nothing.
    failures: AtomicU32,
}

/// Why a connection was lost.
enum Lost {
    /// It could not be opened, or is closed.
    Gone(String),
    /// Nothing arrives on it.
    Deaf,
}

impl Listener {
    pub(super) fn new(
        line: Line,
        names: Arc<Names>,
        wake: Arc<Wake>,
        closing: CancellationToken,
        state: watch::Sender<Listening>,
    ) -> Self {
        Self {
            listening: Arc::new(Task {
                line,
                names,
                wake,
                closing,
                state,
                failures: AtomicU32::new(0),
            }),
            task: Mutex::default(),
        }
    }

    /// Starts the task unless it runs; it is gone if the runtime that it was started in has ended.
    pub(super) fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let is_needed = task.as_ref().is_none_or(JoinHandle::is_finished);
        if is_needed && !self.listening.closing.is_cancelled() {
            let run = Arc::clone(&self.listening).run();
            let seam = &self.listening.line.options.seam;
            *task = Some(seam.spawn(Box::pin(run)));
        }
    }

    /// Waits until the task has ended, but no longer than [`END_MAX`].
    pub(super) async fn close(&self) {
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(task) = task else { return };
        let stop = task.abort_handle();
        let seam = &*self.listening.line.options.seam;
        if connect::within(seam, END_MAX, "listen", task)
            .await
            .is_err()
        {
            stop.abort();
        }
    }
}

impl Task {
    /// Listens until the store is closed.
    async fn run(self: Arc<Self>) {
        let seam = &self.line.options.seam;
        let mut ear = None;
        let listen = async {
            loop {
                let session = AssertUnwindSafe(self.session(&mut ear))
                    .catch_unwind()
                    .await;
                let lost = session.unwrap_or_else(|_| Lost::Gone("the listener panicked".into()));
                if !matches!(lost, Lost::Deaf) {
                    ear = None;
                }
                let failures = self.lost(&lost);
                seam.sleep(backoff::delay(PAUSE, failures, seam.random()))
                    .await;
            }
        };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => {}
            () = listen => {}
        }
        self.state.send_modify(|state| state.is_hearing = false);
        if let Some(ear) = ear {
            ear.close(&**seam).await;
        }
    }

    /// Opens a connection and hears until it is lost. `ear` holds it, or the deaf one before it.
    async fn session(&self, ear: &mut Option<Ear>) -> Lost {
        let options = &self.line.options;
        if ear.is_some() {
            let fresh = match connect::connect(options, "listen").await {
                Ok(fresh) => fresh,
                // The deaf one stays until there is another to take its place.
                Err(_) => return Lost::Deaf,
            };
            if let Some(deaf) = ear.take() {
                deaf.abandon(fresh, &*options.seam).await;
            }
        }
        let channels = [&*self.names.jobs, &*self.names.probes];
        let ear = match Ear::open(options, channels).await {
            Ok(opened) => ear.insert(opened),
            Err(error) => return Lost::Gone(error.to_string()),
        };
        self.wake.notify();
        let answered = Notify::new();
        tokio::select! {
            // Before the probe gives up, everything that has arrived is heard.
            biased;
            lost = self.hear(ear, &answered) => lost,
            () = self.probe(&answered) => Lost::Deaf,
        }
    }

    /// Passes on what arrives.
    async fn hear(&self, ear: &mut Ear, answered: &Notify) -> Lost {
        loop {
            let notification = match ear.next().await {
                Ok(Some(notification)) => notification,
                Ok(None) => return Lost::Gone("the connection was closed".to_owned()),
                Err(error) => return Lost::Gone(error.to_string()),
            };
            if notification.channel() == self.names.probes {
                answered.notify_one();
            } else if notification.payload() != self.names.sender {
                self.wake.notify();
            }
        }
    }

    /// Tries the connection again and again; ends when a probe is not heard.
    async fn probe(&self, answered: &Notify) {
        let seam = &self.line.options.seam;
        loop {
            match self.line.send(&self.names.probes, "").await {
                Ok(()) => {
                    tokio::select! {
                        biased;
                        () = answered.notified() => self.heard(),
                        () = seam.sleep(PROBE_MAX) => return,
                    }
                    seam.sleep(PROBE_EVERY).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "the listening connection could not be tried");
                    seam.sleep(PROBE_AGAIN).await;
                }
            }
        }
    }

    /// Notes that the connection works.
    fn heard(&self) {
        self.state.send_modify(|state| state.is_hearing = true);
        if self.failures.swap(0, Ordering::Relaxed) > 0 {
            let Listening { losses, .. } = *self.state.borrow();
            tracing::info!(losses, "notifications of new jobs arrive again");
        }
    }

    /// Notes that the connection is lost; returns how often in a row that came to nothing.
    fn lost(&self, lost: &Lost) -> u32 {
        let was_hearing = self.state.borrow().is_hearing;
        self.state.send_modify(|state| {
            state.losses += u64::from(state.is_hearing);
            state.is_hearing = false;
        });
        let Listening { losses, .. } = *self.state.borrow();
        let error = match lost {
            Lost::Gone(why) => why,
            Lost::Deaf if was_hearing => "it is open, but nothing arrives on it any more",
            Lost::Deaf => {
                "nothing arrives on it. If a pooler stands before the server, open the queue with \
                 `behind_pooler(true)`"
            }
        };
        let failures = self.failures.load(Ordering::Relaxed).saturating_add(1);
        self.failures.store(failures, Ordering::Relaxed);
        match failures {
            1 => tracing::warn!(
                error,
                losses,
                "the connection that listens for new jobs is lost; until another one works, jobs \
                 of other processes are found by polling"
            ),
            _ => tracing::debug!(error, failures, "still no connection that listens"),
        }
        failures
    }
}
