//! One error: the way out is shown.

use queue_runtime::job;

#[job(dedupe = "cleanup")]
async fn cleanup() {}

fn main() {}
