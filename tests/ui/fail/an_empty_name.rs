//! One error: the rule is shown.

use queue_runtime::job;

#[job(name = "")]
async fn send() {}

fn main() {}
