//! Settlements of many jobs, of which one may be refused for good: it takes no neighbour along.
//!
//! A store applies a batch in one transaction, so a row that it cannot write, because of a rule
//! that somebody added to its tables or a text that its encoding lacks, refuses all of it. Such a
//! batch is offered again one by one.

use super::{ClaimRequest, Store};
use crate::error::StoreError;
use crate::job::{Claimed, Settled, Settlement};

/// Settles as the store does. What the store refuses for what one job holds is logged and answered
/// as stale: the job keeps its lease until that runs out, and then waits for somebody to look.
///
/// # Errors
/// The store's, if it is about more than one job's values.
pub(crate) async fn settle(
    store: &dyn Store,
    settlements: &[Settlement],
) -> Result<Vec<Settled>, StoreError> {
    match store.settle(settlements).await {
        Err(refused) if refused.is_about_values() => one_by_one(store, settlements).await,
        answer => answer,
    }
}

/// Settles and claims as the store does, and [`settle`] otherwise.
pub(crate) async fn exchange(
    store: &dyn Store,
    settlements: &[Settlement],
    request: &ClaimRequest,
) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
    match store.exchange(settlements, request).await {
        Err(refused) if refused.is_about_values() => {
            let settled = one_by_one(store, settlements).await?;
            Ok((settled, store.claim(request).await?))
        }
        answer => answer,
    }
}

async fn one_by_one(
    store: &dyn Store,
    settlements: &[Settlement],
) -> Result<Vec<Settled>, StoreError> {
    let mut answers = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        let answer = match store.settle(std::slice::from_ref(settlement)).await {
            Ok(answer) => answer.first().copied().unwrap_or(Settled::Stale),
            Err(refused) if refused.is_about_values() => {
                tracing::error!(
                    job_id = %settlement.id,
                    error = %refused,
                    cause = ?std::error::Error::source(&refused),
                    "the store refuses to record what became of a job; when its lease has run out its \
                     rescue is refused as well, until somebody looks"
                );
                Settled::Stale
            }
            Err(error) => return Err(error),
        };
        answers.push(answer);
    }
    Ok(answers)
}
