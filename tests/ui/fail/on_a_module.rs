//! One error: an `async fn` is asked for.

use queue_runtime::job;

#[job]
mod jobs {
    pub async fn send() {}
}

fn main() {}
