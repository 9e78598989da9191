//! One error: the form is shown.

use queue_runtime::job;

#[job(retries 5)]
async fn send() {}

fn main() {}
