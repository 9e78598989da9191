//! One error: the compiler reports it at the token.

use queue_runtime::job;

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: u64,
}

#[job(dedupe(order.idd))]
async fn send(order: Order) {
    let _ = order.id;
}

fn main() {}
