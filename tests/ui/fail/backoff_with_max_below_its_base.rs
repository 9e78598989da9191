//! One error: the contradiction is named.

use queue_runtime::job;

#[job(backoff = "exponential(10s, max = 5s)")]
async fn send() {}

fn main() {}
