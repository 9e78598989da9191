//! One error: at `retry_if`, since there is no error that it could judge.

use queue_runtime::{JobError, job};

fn is_temporary(_: &JobError) -> bool {
    true
}

#[job(retry_if = is_temporary)]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
