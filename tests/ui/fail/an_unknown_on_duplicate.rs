//! One error: the nearest value is named.

use queue_runtime::job;

#[job(dedupe = "user_id", on_duplicate = "replce")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
