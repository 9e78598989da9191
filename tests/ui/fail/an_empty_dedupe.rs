//! One error: a field is asked for.

use queue_runtime::job;

#[job(dedupe = "")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
