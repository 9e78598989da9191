//! Two errors: exactly the user's own, at their places.

use queue_runtime::job;

#[job]
async fn send(user_id: u64) {
    let text: String = user_id;
    missing(text);
}

fn main() {}
