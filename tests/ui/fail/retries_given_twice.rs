//! One error: at the second one.

use queue_runtime::job;

#[job(retries = 5, queue = "mail", retries = 6)]
async fn send() {}

fn main() {}
