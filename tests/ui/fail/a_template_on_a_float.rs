//! One error: at the template.

use queue_runtime::job;

#[job(dedupe = "amount-{amount}")]
async fn send(amount: f64) {
    let _ = amount;
}

fn main() {}
