//! One error: at the return type.

use queue_runtime::{JobError, job};

#[job(cache = "product_id", version = "version")]
async fn refresh(product_id: u64, version: u64) -> Result<u64, JobError> {
    Ok(product_id + version)
}

fn main() {}
