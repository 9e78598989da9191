//! One error: the argument's name is proposed.

use queue_runtime::job;

#[job(dedupe = "uid")]
async fn send(#[arg(rename = "uid")] user_id: u64) {
    let _ = user_id;
}

fn main() {}
