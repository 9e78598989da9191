//! One error: at "rerun", which would never store a job.

use queue_runtime::job;

#[job(dedupe = "user_id", on_duplicate = "rerun", dedupe_until = "10m")]
async fn refresh(user_id: u64) {
    let _ = user_id;
}

fn main() {}
