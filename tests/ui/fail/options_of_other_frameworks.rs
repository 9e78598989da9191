//! Five errors: each says what is written here instead.

use queue_runtime::job;

#[job(
    max_attempts = 5,
    retry = 5,
    unique_for = "1h",
    scheduled_at = "tomorrow",
    concurrency = 10
)]
async fn send() {}

fn main() {}
