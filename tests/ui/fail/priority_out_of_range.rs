//! One error: the range is shown.

use queue_runtime::job;

#[job(priority = 101)]
async fn send() {}

fn main() {}
