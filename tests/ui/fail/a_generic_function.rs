//! One error: at the parameter.

use queue_runtime::job;

#[job]
async fn send<T: Send>(value: T) {
    drop(value);
}

fn main() {}
