//! One error: the values are listed.

use queue_runtime::job;

#[job(dedupe = "user_id", dedupe_until = "start")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
