//! One error: at the parameter.

use queue_runtime::job;

#[job]
async fn send<const N: usize>(codes: [u8; N]) {
    let _ = codes;
}

fn main() {}
