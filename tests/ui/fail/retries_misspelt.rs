//! One error: the option is unknown and the nearest one is named.

use queue_runtime::job;

#[job(retrys = 5)]
async fn send() {}

fn main() {}
