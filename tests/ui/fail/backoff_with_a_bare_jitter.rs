//! One error: the percent sign is proposed.

use queue_runtime::job;

#[job(backoff = "exponential(2s, jitter = 20)")]
async fn send() {}

fn main() {}
