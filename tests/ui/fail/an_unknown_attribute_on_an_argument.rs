//! One error: the compiler reports it.

use queue_runtime::job;

#[job]
async fn send(#[wrong] user_id: u64) {
    let _ = user_id;
}

fn main() {}
