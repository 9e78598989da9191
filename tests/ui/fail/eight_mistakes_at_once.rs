//! Eight errors: each at its place.

use queue_runtime::job;

#[job("mail", retries = 5000, timeout = "60", queue = 7, priority = high, nmae = "n", backoff = "linear(1s)")]
async fn send(user_id: &u64) {
    let _ = user_id;
}

fn main() {}
