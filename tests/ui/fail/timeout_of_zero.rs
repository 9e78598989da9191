//! One error: `none` is proposed.

use queue_runtime::job;

#[job(timeout = "0s")]
async fn send() {}

fn main() {}
