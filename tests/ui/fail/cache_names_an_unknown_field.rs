//! One error: at the key, with the field that was meant.

use queue_runtime::{JobError, Refreshed, job};

#[job(cache = "userid", version = "version")]
async fn refresh(user_id: u64, version: u64) -> Result<Refreshed<u64>, JobError> {
    Ok(Refreshed::at(version, user_id))
}

fn main() {}
