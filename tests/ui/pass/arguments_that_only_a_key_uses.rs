//! An argument that a key names is used: the lint's advice, an underscore, would break the key.
#![deny(unused_variables)]

use queue_runtime::{Data, Job, JobError, Refreshed, job};

#[job(cache = "user:{user_id}", version = "version", idempotency(request.0))]
async fn refresh(
    user_id: i64,
    version: u64,
    request: (String, u8),
) -> Result<Refreshed<String>, JobError> {
    Ok(Refreshed::gone())
}

#[job(dedupe = "type, region")]
async fn raw(r#type: u8, region: Option<String>) {}

#[tracing::instrument(skip_all)]
#[job(dedupe = "user_id")]
async fn instrumented_first(user_id: u64, limit: Data<u32>) {
    let _ = limit;
}

#[job(dedupe = "user_id")]
#[tracing::instrument(skip_all)]
async fn instrumented_last(user_id: u64) {}

pub fn main() {
    let made = refresh::new(7, 3, ("a".to_owned(), 1));
    assert_eq!(made.cache_key().as_deref(), Some("user:7"));
    assert_eq!(made.cache_version(), Some(3));
    assert_eq!(made.idempotency_key().as_deref(), Some(r#"["a"]"#));
}
