//! One error: an `async fn` is asked for.

use queue_runtime::job;

#[job]
struct Send {
    user_id: u64,
}

fn main() {}
