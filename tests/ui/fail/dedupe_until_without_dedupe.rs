//! One error: at the option that is alone.

use queue_runtime::job;

#[job(dedupe_until = "started")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
