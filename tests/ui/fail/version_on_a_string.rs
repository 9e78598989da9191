//! One error: at the option.

use queue_runtime::{JobError, Refreshed, job};

#[job(cache = "product_id", version = "version")]
async fn refresh(product_id: u64, version: String) -> Result<Refreshed<u64>, JobError> {
    Err(JobError::permanent(format!("{product_id} {version}")))
}

fn main() {}
