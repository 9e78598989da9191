//! One error: the range is shown.

use queue_runtime::job;

#[job(schema = 0)]
async fn send() {}

fn main() {}
