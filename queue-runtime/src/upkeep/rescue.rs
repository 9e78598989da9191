//! Takes jobs whose lease ran out from their workers, by the same rule as any settlement.
//!
//! The store applies it only where the token still matches and the lease has still run out, so a
//! lease that was renewed a moment ago is left alone and two rescuers take a job once.

use std::collections::HashSet;

use crate::error::StoreError;
use crate::failpoint;
use crate::handler::JobDef;
use crate::job::{JobEvent, JobRecord, JobType, Lease, Outcome, Settled};
use crate::rules::transition::{self, RetryPolicy, Standing};
use crate::seam::Seam;
use crate::store::{Store, apart};

/// The most jobs that one statement takes; more follow at once.
const BATCH_MAX: usize = 100;

/// The most jobs that one round leaves alone before it ends: they are read again with each batch.
const LEFT_MAX: usize = 1_000;

/// Rescues every job whose lease has run out, and reports each that was taken.
///
/// # Errors
/// The store's; what was rescued before stays rescued.
pub(crate) async fn rescue(
    store: &dyn Store,
    limits: RetryPolicy,
    find: &(dyn Fn(&JobType) -> Option<&'static JobDef> + Sync),
    seam: &dyn Seam,
    report: &(dyn Fn(JobEvent) + Sync),
) -> Result<(), StoreError> {
    // What was not taken stays at the head of the list; others wait behind it.
    let mut left: HashSet<Lease> = HashSet::new();
    loop {
        let limit = BATCH_MAX + left.len();
        let expired = store.expired(limit).await?;
        let now = store.now().await?;
        let decided: Vec<_> = expired
            .iter()
            .filter(|job| lease(job).is_none_or(|lease| !left.contains(&lease)))
            .take(BATCH_MAX)
            .filter_map(|job| {
                let backoff = find(&job.job_type).map_or(limits.backoff, |def| def.backoff);
                let policy = RetryPolicy { backoff, ..limits };
                let standing = Standing::of_record(job)?;
                let change =
                    transition::settle(&standing, &Outcome::Lost, &policy, now, seam.random());
                Some((job, change))
            })
            .collect();
        if decided.is_empty() {
            return Ok(());
        }
        let settlements: Vec<_> = decided.iter().map(|(_, change)| change.clone()).collect();
        failpoint::point!("rescue.decided");
        let answers = apart::settle(store, &settlements).await?;
        for ((job, _), answer) in decided.iter().zip(answers) {
            match event(job, answer) {
                Some(event) => report(event),
                // Somebody else takes it or renews it, or the store cannot record it.
                None => left.extend(lease(job)),
            }
        }
        if expired.len() < limit || left.len() >= LEFT_MAX {
            return Ok(());
        }
    }
}

fn lease(job: &JobRecord) -> Option<Lease> {
    Some(Lease {
        id: job.id,
        token: job.lock_token?,
    })
}

fn event(job: &JobRecord, answer: Settled) -> Option<JobEvent> {
    let Settled::Applied(state) = answer else {
        return None;
    };
    Some(JobEvent::Rescued {
        id: job.id,
        job_type: job.job_type.clone(),
        token: job.lock_token?,
        worker: job.locked_by.clone()?,
        state,
    })
}
