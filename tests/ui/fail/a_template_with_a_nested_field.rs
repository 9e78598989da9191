//! One error: the list form is proposed.

use queue_runtime::job;

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: u64,
}

#[job(dedupe = "order-{order.id}")]
async fn send(order: Order) {
    let _ = order.id;
}

fn main() {}
