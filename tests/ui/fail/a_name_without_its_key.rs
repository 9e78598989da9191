//! One error: `name = ..` is proposed.

use queue_runtime::job;

#[job("mail.welcome")]
async fn send() {}

fn main() {}
