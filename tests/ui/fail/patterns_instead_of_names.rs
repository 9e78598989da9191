//! Two errors: a tuple, and a payload without a name.

use queue_runtime::job;

#[job]
async fn send((left, right): (u8, u8), _: u32) {
    let _ = (left, right);
}

fn main() {}
