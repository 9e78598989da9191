//! One error: at the key.

use queue_runtime::job;

#[job(dedupe = "amount")]
async fn send(amount: f64) {
    let _ = amount;
}

fn main() {}
