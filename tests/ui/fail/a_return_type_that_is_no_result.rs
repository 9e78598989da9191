//! One error: at the return type.

use queue_runtime::job;

#[job]
async fn send() -> String {
    String::new()
}

fn main() {}
