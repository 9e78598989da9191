//! One error: at the deadline, after which no retry is left.

use queue_runtime::job;

#[job(retries = 3, backoff = "fixed(1m)", deadline = "30s")]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
