//! One error: an absolute path is asked for.

use queue_runtime::job;

#[job(crate = queue_runtime)]
async fn send() {}

fn main() {}
