//! One error: the nearest field is named.

use queue_runtime::job;

#[job(dedupe = "user_idd")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
