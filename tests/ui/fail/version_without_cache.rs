//! One error: at `version`.

use queue_runtime::job;

#[job(version = "version")]
async fn refresh(version: u64) {
    let _ = version;
}

fn main() {}
