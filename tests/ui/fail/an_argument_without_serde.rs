//! One error: at its type.

use queue_runtime::job;

struct Plain;

#[job]
async fn send(plain: Plain) {
    drop(plain);
}

fn main() {}
