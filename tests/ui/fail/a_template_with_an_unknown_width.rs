//! One error: at the name, inside the string.

use queue_runtime::job;

#[job(dedupe = "user-{user_id:>width$}")]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
