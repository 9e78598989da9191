//! One error: another name is proposed.

use queue_runtime::job;

#[derive(serde::Serialize, serde::Deserialize)]
struct Order;

#[job(payload = Order)]
async fn order(order: Order) {
    drop(order);
}

fn main() {}
