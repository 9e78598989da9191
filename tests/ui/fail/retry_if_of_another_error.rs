//! One error: at the path.

use queue_runtime::job;

fn is_temporary(error: &std::fmt::Error) -> bool {
    let _ = error;
    true
}

#[job(retry_if = is_temporary)]
async fn send() -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {}
