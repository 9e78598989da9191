//! One error: the short unit is proposed.

use queue_runtime::job;

#[job(timeout = "5min")]
async fn send() {}

fn main() {}
