//! Keeps the leases of running jobs, and stops a handler whose lease is lost.
//!
//! One call of [`renew`] renews all leases of a worker in one statement. It runs on a thread of
//! its own (or is called by a test), so a handler that blocks every runtime thread does not lose
//! its lease.
//!
//! Who is believed: a refusal by the store means that the lease is lost, at once. A failure to
//! ask means nothing: handlers go on until shortly before the lease would end by the local
//! monotonic clock, and are stopped then, since the store may hand the job to somebody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::StoreError;
use crate::failpoint;
use crate::handler::{AttemptStop, StopReason};
use crate::job::Lease;
use crate::rules::lease::{LeaseTimes, renews};
use crate::seam::Seam;
use crate::store::{Extended, Heartbeat};

/// The leases that a worker holds, shared between its loop and its heartbeat.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<HashMap<Lease, Held>>);

#[derive(Debug)]
struct Held {
    stop: Arc<AttemptStop>,
    /// When the handler started, and its time limit; `None` while the job waits for a slot.
    running: Option<(Duration, Option<Duration>)>,
    /// When it was claimed.
    claimed_at: Duration,
    /// When the lease must be given up unless it is renewed before.
    local_end: Duration,
}

impl Leases {
    fn held(&self) -> MutexGuard<'_, HashMap<Lease, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over a new lease. `asked` is the monotonic time just before it was asked for, since
    /// the store may have counted from then.
    pub(crate) fn add(&self, lease: Lease, times: LeaseTimes, asked: Duration) -> Arc<AttemptStop> {
        let stop = Arc::new(AttemptStop::default());
        let local_end = times.local_end(asked);
        self.held().insert(
            lease,
            Held {
                stop: Arc::clone(&stop),
                running: None,
                claimed_at: asked,
                local_end,
            },
        );
        stop
    }

    /// Notes that the handler starts now, and returns its stop signal; `None` if the lease was
    /// lost while the job waited for a slot.
    pub(crate) fn start(
        &self,
        lease: Lease,
        timeout: Option<Duration>,
        now: Duration,
    ) -> Option<Arc<AttemptStop>> {
        let mut held = self.held();
        // After a long pause of the process the lease may have ended before anybody looked.
        let entry = held.get_mut(&lease).filter(|held| held.local_end > now)?;
        entry.running = Some((now, timeout));
        Some(Arc::clone(&entry.stop))
    }

    /// Lets go of a lease whose attempt has been settled or given up.
    pub(crate) fn remove(&self, lease: Lease) {
        self.held().remove(&lease);
    }

    /// Returns when the lease was claimed, monotonic; `None` if it is not held.
    pub(crate) fn claimed_at(&self, lease: Lease) -> Option<Duration> {
        self.held().get(&lease).map(|held| held.claimed_at)
    }

    /// Stops every attempt.
    pub(crate) fn stop_all(&self, reason: StopReason) {
        self.held().values().for_each(|held| held.stop.stop(reason));
    }

    /// Names the jobs whose handlers run.
    pub(crate) fn running(&self) -> Vec<Lease> {
        let mut running: Vec<_> = self
            .held()
            .iter()
            .filter(|(_, held)| held.running.is_some())
            .map(|(lease, _)| *lease)
            .collect();
        running.sort();
        running
    }

    /// Returns the leases to renew at `now`, in a fixed order.
    fn to_renew(&self, lease_span: Duration, now: Duration) -> Vec<Lease> {
        let mut leases: Vec<_> = self
            .held()
            .iter()
            .filter(|(_, held)| match held.running {
                Some((started, timeout)) => renews(started, timeout, lease_span, now),
                None => true,
            })
            .map(|(lease, _)| *lease)
            .collect();
        leases.sort();
        leases
    }

    /// Takes over the store's answers to a renewal that was asked for at `asked`.
    fn answered(
        &self,
        answers: impl Iterator<Item = (Lease, Extended)>,
        times: LeaseTimes,
        asked: Duration,
    ) {
        let mut held = self.held();
        for (lease, answer) in answers {
            let Some(entry) = held.get_mut(&lease) else {
                continue;
            };
            match answer {
                Extended::Kept | Extended::Held => entry.local_end = times.local_end(asked),
                Extended::Cancel => {
                    entry.local_end = times.local_end(asked);
                    entry.stop.stop(StopReason::CancelRequested);
                }
                // A handler that has just completed the job in its own transaction holds no lease
                // any more, and may finish. If it has not, its writes are refused by the token.
                Extended::Lost if entry.stop.is_staged() => {
                    held.remove(&lease);
                }
                Extended::Lost => {
                    entry.stop.stop(StopReason::LeaseLost);
                    held.remove(&lease);
                }
            }
        }
    }

    /// Returns how long until the first lease must be given up; `None` if none is held.
    pub(crate) fn until_first_end(&self, now: Duration) -> Option<Duration> {
        let first = self.held().values().map(|held| held.local_end).min()?;
        Some(first.saturating_sub(now))
    }

    /// Stops and lets go of the attempts whose lease was not renewed in time.
    pub(crate) fn run_out(&self, now: Duration) {
        self.held().retain(|_, held| {
            let holds = held.local_end > now;
            if !holds {
                let limit_passed = held.running.is_some_and(|(started, timeout)| {
                    timeout.is_some_and(|limit| started.saturating_add(limit) <= now)
                });
                held.stop.stop(match limit_passed {
                    true => StopReason::LimitPassed,
                    false => StopReason::RanOut,
                });
            }
            holds
        });
    }
}

/// Renews every lease that is worth it, once, and stops the attempts whose lease is refused.
///
/// # Errors
/// If the store could not be asked: then it is unknown which leases were renewed. The same holds if
/// the call is dropped.
pub(crate) async fn renew(
    leases: &Leases,
    heartbeat: &mut dyn Heartbeat,
    times: LeaseTimes,
    seam: &dyn Seam,
) -> Result<(), StoreError> {
    let asked = seam.elapsed();
    let wanted = leases.to_renew(times.lease, asked);
    if wanted.is_empty() {
        return Ok(());
    }
    let answers = heartbeat.extend(&wanted, times.lease).await?;
    failpoint::point!("cancel.untold", if answers.contains(&Extended::Cancel));
    leases.answered(wanted.into_iter().zip(answers), times, asked);
    Ok(())
}

#[cfg(all(test, any(feature = "sqlite", feature = "postgres")))]
mod tests {
    use super::*;
    use crate::job::{JobId, LeaseToken};

    #[test]
    fn a_handler_that_has_completed_its_job_itself_is_not_stopped_for_its_lost_lease() {
        let lease = |token| Lease {
            id: JobId::from_uuid(uuid::Uuid::nil()),
            token: LeaseToken::new(token),
        };
        let leases = Leases::default();
        let times = LeaseTimes::default();
        let running = leases.add(lease(1), times, Duration::ZERO);
        let completing = leases.add(lease(2), times, Duration::ZERO);
        completing.stage();

        let lost = [lease(1), lease(2)].map(|lease| (lease, Extended::Lost));
        leases.answered(lost.into_iter(), times, Duration::ZERO);

        assert_eq!(running.reason(), Some(StopReason::LeaseLost));
        assert_eq!(completing.reason(), None);
        assert_eq!(leases.to_renew(times.lease, Duration::ZERO), []);
    }
}
