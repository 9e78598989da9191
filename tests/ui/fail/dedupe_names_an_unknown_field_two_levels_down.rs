//! One error: at the key, with the field that was meant.

use queue_runtime::job;

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    customer: Customer,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Customer {
    number: u64,
}

#[job(dedupe(order.customer.numbr))]
async fn bill(order: Order) {
    let _ = order;
}

fn main() {}
