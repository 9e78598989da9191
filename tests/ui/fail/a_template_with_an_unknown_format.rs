//! One error: at the format, inside the string.

use queue_runtime::job;

#[job(dedupe = "user-{user_id:q}")]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
