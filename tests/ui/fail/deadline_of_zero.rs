//! One error: leaving it out is proposed.

use queue_runtime::job;

#[job(deadline = "0s")]
async fn send() {}

fn main() {}
