//! One error: the queue is asked for.

use queue_runtime::job;

#[job]
async fn send(user_id: u64, email: &str) {
    let _ = (user_id, email);
}

fn call() {
    let _ = send::enqueue(7, 7, "a@b.c");
}

fn main() {}
