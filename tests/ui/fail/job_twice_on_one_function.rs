//! One error: at the second one.

use queue_runtime::job;

#[job(queue = "mail")]
#[job(retries = 3)]
async fn send(user_id: u64) {
    let _ = user_id;
}

async fn call(queue: &queue_runtime::Queue) {
    let _ = send::enqueue(queue, 7).await;
}

fn main() {}
