//! One error: at the option behind the missing comma.

use queue_runtime::job;

#[job(retries = 3 timeout = "3s")]
async fn send() {}

fn main() {}
