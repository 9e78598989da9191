//! One error: at the key, which proposes a type around it.

use queue_runtime::job;

#[job(dedupe = "every")]
async fn send(every: std::time::Duration) {
    let _ = every;
}

fn main() {}
