//! Takes jobs whose lease ran out from their workers, by the same rule as any settlement.
//!
//! The store applies it only where the token still matches and the lease has still run out, so a
//! lease that was renewed a moment ago is left alone and two rescuers take a job once.

use crate::error::StoreError;
use crate::failpoint;
use crate::handler::JobDef;
use crate::job::{JobEvent, JobRecord, JobType, Outcome, Settled};
use crate::rules::transition::{self, RetryPolicy, Standing};
use crate::seam::Seam;
use crate::store::{Store, apart};

/// The most jobs that one statement takes; more follow at once.
const BATCH_MAX: usize = 100;

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
    loop {
        let expired = store.expired(BATCH_MAX).await?;
        let now = store.now().await?;
        let decided: Vec<_> = expired
            .iter()
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
        let mut took_any = false;
        for ((job, _), answer) in decided.iter().zip(answers) {
            if let Some(event) = event(job, answer) {
                report(event);
                took_any = true;
            }
        }
        // Somebody else takes the same jobs, or renews them: let them.
        if !took_any || expired.len() < BATCH_MAX {
            return Ok(());
        }
    }
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
