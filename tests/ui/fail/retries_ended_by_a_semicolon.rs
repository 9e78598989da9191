//! One error: the value is not a number.

use queue_runtime::job;

#[job(retries = 5;)]
async fn send() {}

fn main() {}
