//! One error: every job would share it.

use queue_runtime::job;

#[job(dedupe = "all-{{users}}")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
