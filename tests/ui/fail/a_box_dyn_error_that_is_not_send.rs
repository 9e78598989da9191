//! One error: at the return type.

use queue_runtime::job;

#[job]
async fn send() -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

fn main() {}
