//! One error: the compiler reports it.

use queue_runtime::job;

#[job]
async fn send(user_id: u64, user_id: u64) {
    let _ = user_id;
}

fn main() {}
