//! One error: the list form is proposed.

use queue_runtime::job;

#[job(dedupe = "user-{user_id}")]
async fn send(user_id: Option<u64>) {
    let _ = user_id;
}

fn main() {}
