//! Generated items satisfy the lints of a strict library.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    missing_copy_implementations,
    unused_qualifications,
    single_use_lifetimes,
    unused_results,
    rust_2018_idioms
)]

use queue_runtime::{Data, Job, JobContext, JobError, job};

#[path = "../support/mod.rs"]
#[allow(unreachable_pub)]
mod support;

/// A public job.
#[job(retries = 5, dedupe = "user_id, email", idempotency = "mail-{email}", derive(Clone))]
pub async fn public(
    ctx: JobContext,
    limit: Data<u32>,
    user_id: u64,
    email: &str,
) -> Result<(), JobError> {
    let _ = (ctx, limit, user_id, email);
    Ok(())
}

mod inner {
    use super::*;

    #[job(cache = "user-{user_id}", version = "version")]
    pub(crate) async fn visible_in_the_crate(
        user_id: u64,
        version: u64,
    ) -> Result<queue_runtime::Refreshed<u64>, JobError> {
        Err(JobError::permanent(format!("{user_id} {version}")))
    }
}

fn main() {
    assert_eq!(PublicJob::DEF.name(), "public");
    let made = public::new(1, "a").clone();
    assert_eq!(made.idempotency_key().as_deref(), Some("mail-a"));
    assert_eq!(inner::visible_in_the_crate::new(1, 2).cache_version(), Some(2));
    let back: PublicJob = support::read(&support::stored(&made));
    assert_eq!(back.user_id, 1);
    let error = support::block_on(inner::visible_in_the_crate(1, 2));
    assert!(error.is_err());
}
