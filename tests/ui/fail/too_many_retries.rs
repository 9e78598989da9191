//! One error: the range is shown.

use queue_runtime::job;

#[job(retries = 5000)]
async fn send() {}

fn main() {}
