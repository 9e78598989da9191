//! One error: it must be used.

#![deny(unused_must_use)]

use queue_runtime::{Queue, job};

#[job]
async fn send(user_id: u64, email: &str) {
    let _ = (user_id, email);
}

fn call(queue: &Queue) {
    send::enqueue(queue, 7, "a@b.c");
}

fn main() {}
