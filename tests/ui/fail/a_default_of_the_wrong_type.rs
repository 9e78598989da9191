//! One error: the compiler reports it at the path.

use queue_runtime::job;

fn text() -> String {
    String::new()
}

#[job]
async fn send(#[arg(default = text)] count: u32) {
    let _ = count;
}

fn main() {}
