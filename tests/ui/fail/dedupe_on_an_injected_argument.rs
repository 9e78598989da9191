//! One error: it is called injected, and the fields are listed.

use queue_runtime::{JobContext, job};

#[job(dedupe = "ctx")]
async fn send(ctx: JobContext, user_id: u64) {
    let _ = (ctx, user_id);
}

fn main() {}
