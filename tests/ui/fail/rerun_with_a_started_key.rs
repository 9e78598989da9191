//! One error: at "rerun", which needs a key that is held while the job runs.

use queue_runtime::job;

#[job(dedupe = "user_id", dedupe_until = "started", on_duplicate = "rerun")]
async fn refresh(user_id: u64) {
    let _ = user_id;
}

fn main() {}
