//! Two errors: the form of the function hides no mistake in a key.

use queue_runtime::job;

#[job(dedupe = "user_idd")]
fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
