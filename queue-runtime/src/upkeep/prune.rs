//! Removes final jobs that are older than their retention, in small batches.

use crate::error::StoreError;
use crate::job::JobEvent;
use crate::store::{Retention, Store};

/// The most rows of a kind that one statement removes, so that no writer waits long behind it.
const BATCH_MAX: usize = 500;

/// The most batches of one round; other work of the store gets a turn before the next.
const BATCHES_MAX: usize = 200;

/// What a round of pruning left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing that is old enough.
    Nothing,
    /// Perhaps more: the round reached its bound.
    More,
}

/// Removes what is old, up to a bound.
///
/// # Errors
/// The store's; what was removed before stays removed.
pub(crate) async fn prune(
    store: &dyn Store,
    retention: &Retention,
    report: &(dyn Fn(JobEvent) + Sync),
) -> Result<Left, StoreError> {
    let mut jobs = 0;
    let mut left = Left::More;
    for _ in 0..BATCHES_MAX {
        let pruned = store.prune(retention, BATCH_MAX).await?;
        jobs += pruned.jobs;
        let most = pruned
            .jobs
            .max(pruned.idempotency_keys)
            .max(pruned.dedupe_windows);
        if most < BATCH_MAX as u64 {
            left = Left::Nothing;
            break;
        }
    }
    if jobs > 0 {
        report(JobEvent::Pruned { jobs });
    }
    Ok(left)
}
