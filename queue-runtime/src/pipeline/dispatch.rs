//! Runs one attempt: from a claimed job to what it came to.
//!
//! A time limit, a lost lease, a cancel and a shutdown all drop the handler's future and fire
//! its stop signal; a panic is caught wherever it happens. Nothing here touches a store: what
//! the attempt came to goes on to the settle stage.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;

use crate::handler::{AttemptStop, JobDef, JobError, JobValue, RunCx, StopReason};
use crate::job::{Claimed, Outcome};
use crate::rules::error_text::panic_message;
use crate::seam::Seam;
use crate::time::Timestamp;

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// It succeeded with this value.
    Success(JobValue),
    /// It has completed its job in a transaction of its own; nothing is left to settle.
    Completed(JobValue),
    /// It ended in another way.
    Ended(Outcome),
    /// Its lease is lost: nothing may be said about the job any more.
    Abandoned,
}

/// Says what becomes of a claimed job that must not be run at all.
pub(crate) fn refuse(claimed: &Claimed, now: Timestamp) -> Option<Outcome> {
    if claimed.cancel_requested {
        return Some(Outcome::Cancelled { reason: None });
    }
    claimed
        .deadline
        .filter(|end| *end <= now)
        .map(|_| Outcome::DeadlinePassed)
}

/// Runs the handler until it ends or is stopped.
pub(crate) async fn run(def: &JobDef, cx: &RunCx, stop: &AttemptStop, seam: &dyn Seam) -> Ran {
    let attempt = async {
        tokio::select! {
            // A stop that has come already wins over a handler that would succeed at once.
            biased;
            reason = stop.stopped() => stopped(reason, def),
            result = (def.run)(cx) => ended(result),
            () = until(def.timeout, seam) => timed_out(def),
        }
    };
    // The handler's future is dropped inside, so a panic while dropping it is caught as well.
    AssertUnwindSafe(attempt)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| {
            Ran::Ended(Outcome::Panicked {
                error: panic_message(panic),
            })
        })
}

fn stopped(reason: StopReason, def: &JobDef) -> Ran {
    match reason {
        // A handler that blocks its thread is told long after its limit; it has used its attempt.
        StopReason::LimitPassed => timed_out(def),
        StopReason::CancelRequested => Ran::Ended(Outcome::Cancelled { reason: None }),
        // The store decides by the token whether somebody else has the job by now. An outage
        // that outlasts a lease must cost a healthy job nothing.
        StopReason::Shutdown | StopReason::RanOut => Ran::Ended(Outcome::HandedBack),
        StopReason::LeaseLost | StopReason::Ended => Ran::Abandoned,
    }
}

fn timed_out(def: &JobDef) -> Ran {
    Ran::Ended(Outcome::TimedOut {
        limit: def.timeout.unwrap_or_default(),
    })
}

fn ended(result: Result<JobValue, JobError>) -> Ran {
    match result {
        Ok(value) => Ran::Success(value),
        Err(error) => Ran::Ended(error.into_outcome()),
    }
}

async fn until(limit: Option<Duration>, seam: &dyn Seam) {
    match limit {
        Some(limit) => seam.sleep(limit).await,
        None => std::future::pending().await,
    }
}
