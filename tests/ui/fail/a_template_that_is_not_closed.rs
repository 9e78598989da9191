//! One error: the compiler reports it inside the string.

use queue_runtime::job;

#[job(dedupe = "user-{user_id")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
