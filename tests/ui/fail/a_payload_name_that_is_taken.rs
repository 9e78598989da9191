//! Four errors: the compiler's own; the first says it.

use queue_runtime::job;

struct SendJob;

#[job]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
