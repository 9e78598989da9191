//! One error: the compiler's lint, which is off only for arguments in a key.

#![deny(unused_variables)]

use queue_runtime::job;

#[job(dedupe = "user_id")]
async fn send(user_id: u64, email: &str) {}

fn main() {}
