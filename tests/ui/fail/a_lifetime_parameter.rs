//! One error: at the parameter, and not again at the argument.

use queue_runtime::job;

#[job]
async fn send<'a>(email: &'a str) {
    let _ = email;
}

fn main() {}
