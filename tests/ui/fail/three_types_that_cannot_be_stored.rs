//! Three errors: argument, result and error, each at its place.

use queue_runtime::job;

struct Plain;

#[job]
async fn send(plain: Option<Plain>) -> Result<Vec<Plain>, Box<dyn std::error::Error>> {
    Ok(plain.into_iter().collect())
}

fn main() {}
