//! One error: at the closure, whose comma cuts nothing.

use queue_runtime::job;

#[job(schema = 2, upcast = |_, _| Ok(()))]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
