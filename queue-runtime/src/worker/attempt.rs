//! One attempt on a task of its own: ticket, handler, publish, hooks.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;

use super::Shared;
use crate::cache::{Prepared, Published, Ticket};
use crate::failpoint;
use crate::handler::{AttemptStop, JobContext, JobDef, JobValue, RunCx, StopReason};
use crate::job::{Claimed, Outcome, OutcomeKind};
use crate::pipeline::dispatch::{self, Ran};
use crate::pipeline::settle;
use crate::rules::error_text::panic_message;

/// How often a refresh starts again because the cache lost its key meanwhile.
const RESTARTS_MAX: u32 = 2;

/// How soon a refresh is tried again that read old data, or could not learn the newest version.
const LAG_PAUSE: Duration = Duration::from_secs(1);

/// An attempt that is over.
pub(super) struct Finished {
    pub(super) claimed: Claimed,
    pub(super) ran: Ran,
    pub(super) took: Duration,
    /// Whether the handler may have completed the job in a transaction of its own.
    pub(super) is_staged: bool,
}

/// Runs an attempt and sends what it came to; always sends, so that its slot is freed.
pub(super) async fn run(
    shared: Arc<Shared>,
    def: &'static JobDef,
    claimed: Claimed,
    stop: Arc<AttemptStop>,
    done: mpsc::UnboundedSender<Finished>,
) {
    let started = shared.backend.seam().elapsed();
    let shared_claim = Arc::new(claimed);
    let context = JobContext::new(
        Arc::clone(&shared.backend),
        Arc::clone(&shared_claim),
        Arc::clone(&stop),
    );
    let cx = RunCx::new(context, Arc::clone(&shared.data));
    let attempt = AssertUnwindSafe(street(&shared, def, &cx, &stop)).catch_unwind();
    let ran = attempt.await.unwrap_or_else(|panic| {
        Ran::Ended(Outcome::Panicked {
            error: panic_message(panic),
        })
    });
    // Whatever the handler started beside its future learns that the attempt is over.
    stop.stop(StopReason::Ended);
    let took = shared.backend.seam().elapsed().saturating_sub(started);
    match &ran {
        Ran::Success(_) | Ran::Completed(_) => {
            shared
                .hooks
                .after_attempt(cx.context(), Some(&Outcome::Success), took)
        }
        Ran::Ended(outcome) => shared
            .hooks
            .after_attempt(cx.context(), Some(outcome), took),
        Ran::Abandoned => shared.hooks.after_attempt(cx.context(), None, took),
    }
    drop(cx);
    let claimed = Arc::unwrap_or_clone(shared_claim);
    // The loop is gone only if the worker is, and then nobody is left to tell.
    let is_staged = stop.is_staged();
    let _ = done.send(Finished {
        claimed,
        ran,
        took,
        is_staged,
    });
}

/// Ticket, handler, publish; starts again if the cache lost the key in between.
async fn street(shared: &Shared, def: &JobDef, cx: &RunCx, stop: &AttemptStop) -> Ran {
    shared.hooks.before_attempt(cx.context());
    let mut restarts = 0;
    loop {
        let ticket = match ticket(shared, def, cx.context()).await {
            Ok(ticket) => ticket,
            Err(outcome) => return Ran::Ended(outcome),
        };
        failpoint::point!("handler.unpolled");
        let ran = dispatch::run(def, cx, stop, shared.backend.seam().as_ref()).await;
        let ran = match stop.is_staged() {
            true => confirmed(shared, cx.context(), ran).await,
            false => ran,
        };
        let (Ran::Success(value) | Ran::Completed(value), Some(ticket)) = (&ran, &ticket) else {
            return ran;
        };
        let Some(found) = &value.refreshed else {
            return ran;
        };
        match shared.backend.cache().publish(ticket, found) {
            Published::Done => return ran,
            Published::LagsBehind if matches!(ran, Ran::Success(_)) => {
                return Ran::Ended(Outcome::Snooze { delay: LAG_PAUSE });
            }
            Published::LostIncarnation
                if restarts < RESTARTS_MAX && matches!(ran, Ran::Success(_)) =>
            {
                restarts += 1;
            }
            // The work is done; only this cache misses it, and the next reader will ask again.
            Published::LostIncarnation | Published::LagsBehind => return ran,
        }
    }
}

/// Reads back whether a handler that completed the job in its own transaction has committed it.
/// Its word does not count: a commit may be lost without an answer, or forgotten.
async fn confirmed(shared: &Shared, context: &JobContext, ran: Ran) -> Ran {
    let lease = context.claimed().lease();
    let store = shared.backend.store();
    let recorded = settle::recorded(lease, store.as_ref()).await;
    match (recorded, ran) {
        (Ok(Some(OutcomeKind::Success)), Ran::Success(value)) => Ran::Completed(value),
        (Ok(Some(OutcomeKind::Success)), ran) => {
            // The job is done; what went wrong afterwards is in no history.
            if let Ran::Ended(outcome) = ran {
                tracing::warn!(
                    job_id = %lease.id,
                    outcome = outcome.kind().as_str(),
                    error = outcome.error().unwrap_or(""),
                    "the handler ended otherwise after it had completed its job"
                );
            }
            Ran::Completed(JobValue::default())
        }
        // If it is committed after all, the settlement is stale, and what it means is read back
        // again.
        (_, Ran::Success(_)) => Ran::Ended(Outcome::Retry {
            error: "the handler completed the job in a transaction and returned Ok, but did not \
                    commit the transaction"
                .to_owned(),
        }),
        (_, ran) => ran,
    }
}

async fn ticket(
    shared: &Shared,
    def: &JobDef,
    context: &JobContext,
) -> Result<Option<Ticket>, Outcome> {
    let Some(wanted) = context
        .claimed()
        .cache
        .as_ref()
        .filter(|_| def.refreshes_cache)
    else {
        return Ok(None);
    };
    let store = shared.backend.store();
    match shared.backend.cache().prepare(store.as_ref(), wanted).await {
        Ok(Prepared::Run(ticket)) => Ok(Some(ticket)),
        Ok(Prepared::Superseded { newest }) => Err(Outcome::Superseded { newest }),
        // The store's fault and not the job's.
        Err(error) => {
            tracing::warn!(error = %error, "the newest version is unknown; trying again");
            Err(Outcome::Snooze { delay: LAG_PAUSE })
        }
    }
}
