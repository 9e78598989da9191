//! One error: seconds are proposed.

use queue_runtime::job;

#[job(timeout = "60")]
async fn send() {}

fn main() {}
