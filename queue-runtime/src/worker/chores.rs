//! The loops beside the street: rescue, and retention with a look for jobs that nobody here can
//! run. Each survives a store that is down.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Shared;
use super::unread::Looks;
use crate::error::{StoreError, WorkerError};
use crate::job::Backoff;
use crate::rules::backoff;
use crate::rules::error_text::panic_message;
use crate::upkeep::prune::Left;
use crate::upkeep::{prune, rescue};

/// How long workers may take to speak up after an outage: the longest pause between two of their
/// tries, and what it is spread by.
const AFTER_OUTAGE: Duration = Duration::from_millis(6_500);

/// How soon a round of pruning follows one that reached its bound.
const PRUNE_AGAIN: Duration = Duration::from_millis(200);

/// Stops the loops when it is dropped.
pub(super) struct Running(Vec<AbortHandle>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// Starts both loops. A fault that waiting cannot cure is sent to `failed`.
pub(super) fn start(shared: &Arc<Shared>, failed: mpsc::UnboundedSender<WorkerError>) -> Running {
    let rescue = {
        let shared = Arc::clone(shared);
        async move { repeat(&shared, "rescue", || rescue_once(&shared)).await }
    };
    let prune = {
        let shared = Arc::clone(shared);
        async move {
            let looks = Looks::new();
            repeat(&shared, "prune", || prune_once(&shared, &looks)).await
        }
    };
    let rescue = supervised("rescue", rescue, failed.clone());
    let prune = supervised("prune", prune, failed);
    let seam = shared.backend.seam();
    Running(vec![
        seam.spawn(Box::pin(rescue)).abort_handle(),
        seam.spawn(Box::pin(prune)).abort_handle(),
    ])
}

/// How long to leave a store alone after this many failures in a row.
pub(super) fn pause(failures: u32, seed: u64) -> Duration {
    const PAUSE: Backoff = Backoff::Exponential {
        base: Duration::from_millis(100),
        max: Duration::from_secs(5),
        jitter_percent: 30,
    };
    backoff::delay(PAUSE, failures, seed)
}

/// Takes over what is lost. After an outage of the store, workers that lived through it get the
/// first turn: they record their results or hand their jobs back, which would count as crashes if
/// a rescue came first.
async fn rescue_once(shared: &Shared) -> Result<Duration, StoreError> {
    let times = shared.config.times;
    let begun = shared.backend.seam().elapsed();
    // Asks the store to write and gives it nothing to: what is read below may be acted on only
    // if that takes no time. A look at expired leases alone succeeds while a writer is locked out.
    shared
        .backend
        .store()
        .prune(&shared.config.retention, 0)
        .await?;
    let waited = shared.backend.seam().elapsed().saturating_sub(begun);
    if waited > times.heartbeat || shared.outage.swap(false, Ordering::Relaxed) {
        shared
            .backend
            .seam()
            .sleep(AFTER_OUTAGE.min(times.lease))
            .await;
    }
    let find = |job_type: &_| shared.registry.find(job_type);
    let report = |event| shared.report(event);
    let store = shared.backend.store().as_ref();
    let seam = shared.backend.seam().as_ref();
    rescue::rescue(store, shared.config.limits, &find, seam, &report).await?;
    Ok(shared.jittered(shared.config.rescue_every))
}

/// Removes what is old, after a look for jobs that nobody here can run.
async fn prune_once(shared: &Shared, looks: &Looks) -> Result<Duration, StoreError> {
    looks.look(shared).await;
    let report = |event| shared.report(event);
    let store = shared.backend.store().as_ref();
    Ok(
        match prune::prune(store, &shared.config.retention, &report).await? {
            Left::Nothing => {
                looks.again();
                shared.jittered(shared.config.prune_every)
            }
            Left::More => PRUNE_AGAIN,
        },
    )
}

/// Runs a chore at once, and again after each span that it asks for, until it meets a fault that
/// waiting cannot cure.
async fn repeat<F: Future<Output = Result<Duration, StoreError>>>(
    shared: &Shared,
    name: &'static str,
    chore: impl Fn() -> F,
) -> StoreError {
    let seam = shared.backend.seam();
    let mut failures = 0;
    loop {
        let span = match chore().await {
            Ok(span) => {
                failures = 0;
                span
            }
            Err(error) if error.is_transient() => {
                failures += 1;
                shared.outage.store(true, Ordering::Relaxed);
                tracing::warn!(chore = name, error = %error, "the store does not answer");
                pause(failures, seam.random())
            }
            Err(error) => return error,
        };
        seam.sleep(span).await;
    }
}

/// Turns the end of a loop, which it should not have, into the worker's failure.
pub(super) async fn supervised(
    name: &'static str,
    run: impl Future<Output = StoreError>,
    failed: mpsc::UnboundedSender<WorkerError>,
) {
    let error = match AssertUnwindSafe(run).catch_unwind().await {
        Ok(source) => WorkerError::Store { name, source },
        Err(panic) => WorkerError::Panicked {
            name,
            message: panic_message(panic),
        },
    };
    // The worker is over already if nobody listens.
    let _ = failed.send(error);
}
