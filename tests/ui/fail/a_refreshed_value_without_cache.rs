//! Two errors: `cache` and `version` are missing.

use queue_runtime::{JobError, Refreshed, job};

#[job]
async fn refresh(user_id: i64) -> Result<Refreshed<i64>, JobError> {
    Ok(Refreshed::at(1, user_id))
}

#[job]
async fn refresh_alone(user_id: i64) -> queue_runtime::Refreshed<i64> {
    Refreshed::at(1, user_id)
}

fn main() {}
