//! Four errors: each at its value.

use queue_runtime::job;

#[job(retries = "5", queue = mail, timeout = 60, priority = high)]
async fn send() {}

fn main() {}
