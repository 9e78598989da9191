//! One error: the range is shown, and the minus underlined too.

use queue_runtime::job;

#[job(retries = -1)]
async fn send() {}

fn main() {}
