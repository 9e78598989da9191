//! One error: at the return type.

use queue_runtime::job;

struct Out;

#[job]
async fn send() -> Result<Out, std::io::Error> {
    Ok(Out)
}

fn main() {}
