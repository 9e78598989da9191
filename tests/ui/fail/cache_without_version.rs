//! One error: at `cache`.

use queue_runtime::job;

#[job(cache = "product_id")]
async fn refresh(product_id: u64) {
    let _ = product_id;
}

fn main() {}
