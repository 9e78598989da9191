//! One error: at its name.

use queue_runtime::job;

#[job(serial = "user_id")]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
