//! One error: at the second argument.

use queue_runtime::job;

#[job]
async fn send(#[arg(rename = "id")] user_id: u64, id: u64) {
    let _ = (user_id, id);
}

fn main() {}
