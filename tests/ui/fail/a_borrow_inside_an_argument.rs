//! One error: the whole type is underlined.

use queue_runtime::job;

#[job]
async fn send(email: Option<&str>) {
    let _ = email;
}

fn main() {}
