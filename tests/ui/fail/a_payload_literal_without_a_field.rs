//! One error: the field is named.

use queue_runtime::job;

#[job]
async fn send(user_id: u64, email: &str) {
    let _ = (user_id, email);
}

fn call() -> SendJob {
    SendJob { user_id: 7 }
}

fn main() {}
