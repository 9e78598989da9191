//! One error: one concrete type is asked for.

use queue_runtime::job;

#[job]
async fn send(email: impl Into<String>) {
    let _ = email.into();
}

fn main() {}
