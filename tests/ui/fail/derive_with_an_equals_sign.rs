//! One error: the form is shown.

use queue_runtime::job;

#[job(derive = Clone)]
async fn send() {}

fn main() {}
