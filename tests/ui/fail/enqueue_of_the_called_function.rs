//! One error: a call of the function is not its payload.

use queue_runtime::{Queue, job};

#[job]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn call(queue: &Queue) {
    let _ = queue.enqueue(send(7));
}

fn main() {}
