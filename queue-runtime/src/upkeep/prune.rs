//! Removes final jobs that are older than their retention, in small batches.

use crate::error::StoreError;
use crate::job::JobEvent;
use crate::store::{Retention, Store};

/// The most jobs that one statement removes, so that no writer waits long behind it.
const BATCH_MAX: usize = 500;

/// The most batches of one round; the rest waits for the next round.
const BATCHES_MAX: usize = 200;

/// Removes what is old, and returns how many jobs that was.
///
/// # Errors
/// The store's; what was removed before stays removed.
pub(crate) async fn prune(
    store: &dyn Store,
    retention: &Retention,
    report: &(dyn Fn(JobEvent) + Sync),
) -> Result<u64, StoreError> {
    let mut jobs = 0;
    for _ in 0..BATCHES_MAX {
        let pruned = store.prune(retention, BATCH_MAX).await?;
        jobs += pruned.jobs;
        if pruned.jobs < BATCH_MAX as u64 && pruned.idempotency_keys < BATCH_MAX as u64 {
            break;
        }
    }
    if jobs > 0 {
        report(JobEvent::Pruned { jobs });
    }
    Ok(jobs)
}
