//! One error: the swap is proposed.

use queue_runtime::{Queue, job};

#[job]
async fn send(user_id: u64, email: &str) {
    let _ = (user_id, email);
}

fn call(queue: &Queue) {
    let _ = send::enqueue(queue, "a@b.c", 7);
}

fn main() {}
