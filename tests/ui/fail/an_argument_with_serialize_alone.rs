//! One error: the same single error.

use queue_runtime::job;

#[derive(serde::Serialize)]
struct Half;

#[job]
async fn send(half: Half) {
    drop(half);
}

fn main() {}
