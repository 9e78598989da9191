//! One error: the call says nothing.

use queue_runtime::{Queue, job};

#[job(retries = 5000)]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn call(queue: &Queue) {
    let _ = send::enqueue(queue, 7);
    let _ = SendJob { user_id: 7 };
}

fn main() {}
