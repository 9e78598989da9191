//! One error: the space is named.

use queue_runtime::job;

#[job(timeout = "60 secs")]
async fn send() {}

fn main() {}
