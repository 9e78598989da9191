//! Two errors: in a string and as tokens.

use queue_runtime::job;

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: u64,
}

#[job(dedupe = "order.id", idempotency(orders.id))]
async fn send(order: Option<Order>, orders: Vec<Order>) {
    let _ = (order.map(|order| order.id), orders.len());
}

fn main() {}
