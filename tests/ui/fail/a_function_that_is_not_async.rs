//! One error: `async fn` and `spawn_blocking` are named.

use queue_runtime::job;

#[job]
fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
