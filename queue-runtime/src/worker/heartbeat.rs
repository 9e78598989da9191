//! Keeps leases alive whatever the handlers do, on a thread of its own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::{Shared, chores};
use crate::error::{StoreError, StoreErrorKind, WorkerError};
use crate::job::JobEvent;
use crate::pipeline::keepalive::renew;
use crate::store::Heartbeat;

/// How short a wait may be.
const SHORTEST: Duration = Duration::from_millis(1);

/// Stops the thread when it is dropped.
pub(super) struct Running {
    _stop: oneshot::Sender<()>,
}

/// Starts the heartbeat apart from the handlers. A fault that waiting cannot cure is sent to
/// `failed`.
pub(super) fn start(shared: &Arc<Shared>, failed: mpsc::UnboundedSender<WorkerError>) -> Running {
    let (stop, stopped) = oneshot::channel();
    let handlers = Handle::current();
    let its_shared = Arc::clone(shared);
    let beats = chores::supervised(
        "heartbeat",
        async move { run(&its_shared, &handlers).await },
        failed.clone(),
    );
    let task = async move {
        tokio::select! {
            biased;
            // The worker is over: nobody needs its leases any more.
            _ = stopped => {}
            () = beats => {}
        }
    };
    if let Err(error) = shared
        .backend
        .seam()
        .spawn_apart("queue-heartbeat", Box::pin(task))
    {
        let source = no_thread(&error);
        let _ = failed.send(WorkerError::Store {
            name: "heartbeat",
            source,
        });
    }
    Running { _stop: stop }
}

/// Beats until it cannot go on.
async fn run(shared: &Shared, handlers: &Handle) -> StoreError {
    let seam = shared.backend.seam().as_ref();
    let times = shared.config.times;
    let mut liveness = Liveness::new();
    let mut heartbeat: Option<Box<dyn Heartbeat>> = None;
    let mut failures = 0;
    loop {
        let pause = match failures {
            0 => times.heartbeat,
            _ => chores::pause(failures, seam.random()).min(times.heartbeat),
        };
        let end = shared.leases.until_first_end(seam.elapsed());
        // No wait goes beyond the moment at which a lease must be given up.
        let pause = pause.min(end.unwrap_or(pause)).max(SHORTEST);
        seam.sleep(pause).await;
        shared.leases.run_out(seam.elapsed());
        liveness.check(shared, handlers, times.lease / 3);
        let connection = match heartbeat.take() {
            Some(connection) => Ok(connection),
            None => answered(shared, "heartbeat", shared.backend.store().heartbeat()).await,
        };
        let failed = match connection {
            Ok(mut connection) => {
                let renewal = renew(&shared.leases, connection.as_mut(), times, seam);
                let failed = answered(shared, "extend", renewal).await.err();
                // After a failure the connection is not trusted and a new one is opened.
                if failed.is_none() {
                    heartbeat = Some(connection);
                }
                failed
            }
            Err(error) => Some(error),
        };
        match failed {
            None => failures = 0,
            Some(error) if error.is_transient() => {
                failures += 1;
                tracing::warn!(error = %error, "leases could not be renewed; trying again");
            }
            Some(error) => return error,
        }
    }
}

/// Waits for the store's answer as long as [`LeaseTimes::patience`] says, so that a second try is left
/// if none comes. Meanwhile a lease that may have ended stops its handler, whose task reports the loss
/// when it ends; the others still wait for the answer, since to ask anew takes longer.
async fn answered<T>(
    shared: &Shared,
    operation: &'static str,
    asking: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let seam = shared.backend.seam().as_ref();
    let patience = shared.config.times.patience();
    let mut asking = pin!(asking);
    let mut waited_out = seam.sleep(patience);
    let answer = loop {
        let first_end = shared.leases.until_first_end(seam.elapsed());
        let next_look = first_end.unwrap_or(patience).max(SHORTEST);
        tokio::select! {
            biased;
            answer = &mut asking => break answer,
            () = &mut waited_out => break Err(no_answer(operation, patience)),
            () = seam.sleep(next_look) => shared.leases.run_out(seam.elapsed()),
        }
    };
    // Whatever the answer was.
    shared.leases.run_out(seam.elapsed());
    answer
}

/// The store was asked and has not answered for so long.
fn no_answer(operation: &'static str, waited: Duration) -> StoreError {
    let message = format!("the store did not answer within {waited:?}");
    StoreError::new(StoreErrorKind::Unavailable, operation, message)
}

/// Notices that no task of the handlers' runtime gets a turn.
struct Liveness {
    answered: Arc<AtomicBool>,
    asked_at: Option<Duration>,
    told: bool,
}

impl Liveness {
    fn new() -> Self {
        Self {
            answered: Arc::new(AtomicBool::new(true)),
            asked_at: None,
            told: false,
        }
    }

    /// Asks the handlers' runtime for a sign of life, and reports once if the last question has
    /// waited longer than `patience`.
    fn check(&mut self, shared: &Shared, handlers: &Handle, patience: Duration) {
        let seam = shared.backend.seam();
        let now = seam.elapsed();
        if self.answered.swap(false, Ordering::AcqRel) {
            self.asked_at = Some(now);
            self.told = false;
            let answered = Arc::clone(&self.answered);
            let _inside = handlers.enter();
            drop(seam.spawn(Box::pin(
                async move { answered.store(true, Ordering::Release) },
            )));
            return;
        }
        let blocked = self
            .asked_at
            .map_or(Duration::ZERO, |asked| now.saturating_sub(asked));
        if blocked > patience && !self.told {
            self.told = true;
            let running = shared
                .leases
                .running()
                .into_iter()
                .map(|lease| lease.id)
                .collect();
            shared.report(JobEvent::Blocked { running, blocked });
        }
    }
}

fn no_thread(error: &std::io::Error) -> StoreError {
    let message = format!("the system refuses a thread: {error}");
    StoreError::new(StoreErrorKind::Unsupported, "heartbeat", message)
}
