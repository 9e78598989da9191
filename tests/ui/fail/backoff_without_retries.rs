//! One error: at `backoff`. Whoever wrote it may take 0 for "without end".

use queue_runtime::job;

#[job(retries = 0, backoff = "fixed(5s)")]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
