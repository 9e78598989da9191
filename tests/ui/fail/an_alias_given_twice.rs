//! One error: at the second one.

use queue_runtime::job;

#[job(name = "mail.welcome", alias = "mail.hello", alias = "mail.hello")]
async fn send() {}

fn main() {}
