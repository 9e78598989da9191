//! One error: by value is proposed.

use queue_runtime::{JobContext, job};

#[job]
async fn send(ctx: &JobContext) {
    let _ = ctx;
}

fn main() {}
