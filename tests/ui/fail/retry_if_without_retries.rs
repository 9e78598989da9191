//! One error: at `retry_if`.

use queue_runtime::job;

fn is_temporary(_: &std::io::Error) -> bool {
    true
}

#[job(retries = 0, retry_if = is_temporary)]
async fn send(user_id: u64) -> Result<(), std::io::Error> {
    let _ = user_id;
    Ok(())
}

fn main() {}
