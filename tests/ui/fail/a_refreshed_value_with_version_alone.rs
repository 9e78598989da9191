//! One error: the option that is missing, and nothing about the value.

use queue_runtime::{Refreshed, job};

#[job(version = "version")]
async fn refresh(user_id: i64, version: u64) -> Refreshed<i64> {
    Refreshed::at(version, user_id)
}

fn main() {}
