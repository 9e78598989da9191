//! A job with `cache` returns `Result<Refreshed<T>, E>`, with the key and the version in any form.

use queue_runtime::{Job, JobError, Refreshed, job};

#[job(cache = "product_id", version = "version")]
async fn plain(product_id: u64, version: u64) -> Result<Refreshed<String>, JobError> {
    Err(JobError::permanent(format!("{product_id} {version}")))
}

#[job(cache = "product-{product_id}", version(source.version))]
async fn nested(product_id: u64, source: Source) -> std::io::Result<Refreshed<u64>> {
    Ok(Refreshed::at(source.version, product_id))
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Source {
    version: u64,
}

fn main() {
    let made = plain::new(7, 3);
    assert_eq!(made.cache_key().as_deref(), Some("[\"7\"]"));
    assert_eq!(made.cache_version(), Some(3));
    let made = nested::new(7, Source { version: 4 });
    assert_eq!(made.cache_key().as_deref(), Some("product-7"));
    assert_eq!(made.cache_version(), Some(4));
}
