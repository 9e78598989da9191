//! One error: at the path.

use queue_runtime::job;

#[job(schema = 2, upcast = to_next)]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
