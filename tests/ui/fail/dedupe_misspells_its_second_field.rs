//! One error: the caret stands under the second name.

use queue_runtime::job;

#[job(dedupe = "user_id, orderid")]
async fn send(user_id: u64, order_id: u64) {
    let _ = (user_id, order_id);
}

fn main() {}
