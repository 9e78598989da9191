//! One error: it has no effect.

use queue_runtime::{JobContext, job};

#[job]
async fn send(#[arg(default)] ctx: JobContext) {
    let _ = ctx;
}

fn main() {}
