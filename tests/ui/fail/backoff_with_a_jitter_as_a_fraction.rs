//! One error: the percentage is proposed.

use queue_runtime::job;

#[job(backoff = "exponential(2s, jitter = 0.2)")]
async fn send() {}

fn main() {}
