//! One error: one field is asked for.

use queue_runtime::{JobError, job};

#[job(cache = "product_id", version = "product_id, version")]
async fn refresh(product_id: u64, version: u64) -> Result<(), JobError> {
    Err(JobError::permanent(format!("{product_id} {version}")))
}

fn main() {}
