//! One error: the first wrong character is named.

use queue_runtime::job;

#[job(queue = "Mail Queue")]
async fn send() {}

fn main() {}
