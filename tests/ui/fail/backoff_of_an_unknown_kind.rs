//! One error: the nearest kind is named.

use queue_runtime::job;

#[job(backoff = "exponental(2s)")]
async fn send() {}

fn main() {}
