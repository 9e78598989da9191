//! One error: the nearest one is named.

use queue_runtime::job;

#[job]
async fn send(#[arg(defualt)] user_id: u64) {
    let _ = user_id;
}

fn main() {}
