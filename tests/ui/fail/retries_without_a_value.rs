//! One error: the form is shown.

use queue_runtime::job;

#[job(retries)]
async fn send() {}

fn main() {}
