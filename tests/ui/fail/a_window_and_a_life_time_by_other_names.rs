//! Two errors: each says what is written here instead.

use queue_runtime::job;

#[job(dedupe = "user_id", dedupe_for = "1h", ttl = "1h")]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
