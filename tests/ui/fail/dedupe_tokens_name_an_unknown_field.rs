//! One error: at the identifier.

use queue_runtime::job;

#[job(dedupe(user_id, orderid))]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
