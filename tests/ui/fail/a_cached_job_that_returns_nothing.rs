//! One error: at `cache`, whose job returns the refreshed value.

use queue_runtime::job;

#[job(cache = "user-{user_id}", version = "version")]
async fn refresh(user_id: u64, version: u64) {
    let _ = (user_id, version);
}

fn main() {}
