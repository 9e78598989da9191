//! One error: nothing is near, so all options are listed.

use queue_runtime::job;

#[job(colour = "red")]
async fn send() {}

fn main() {}
