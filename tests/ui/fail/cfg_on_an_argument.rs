//! One error: the payload would change with the build.

use queue_runtime::job;

#[job]
async fn send(#[cfg(unix)] user_id: u64) {
    let _ = user_id;
}

fn main() {}
