//! One error: at the key, with the field that was meant.

use queue_runtime::job;

#[job(idempotency = "order-{orderid}", idempotency_for = "24h")]
async fn bill(order_id: u64) {
    let _ = order_id;
}

fn main() {}
