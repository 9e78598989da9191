//! A job with `cache` returns `Refreshed<T>`, alone or in a `Result`.

use queue_runtime::{Job, JobError, Refreshed, job};

#[job(cache = "product_id", version = "version")]
async fn fallible(product_id: u64, version: u64) -> Result<Refreshed<String>, JobError> {
    Err(JobError::permanent(format!("{product_id} {version}")))
}

#[job(cache = "product-{product_id}", version(source.version))]
async fn infallible(product_id: u64, source: Source) -> Refreshed<u64> {
    Refreshed::at(source.version, product_id)
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Source {
    version: u64,
}

fn main() {
    let made = fallible::new(7, 3);
    assert_eq!(made.cache_key().as_deref(), Some("[\"7\"]"));
    assert_eq!(made.cache_version(), Some(3));
    let made = infallible::new(7, Source { version: 4 });
    assert_eq!(made.cache_key().as_deref(), Some("product-7"));
    assert_eq!(made.cache_version(), Some(4));
}
