//! One error: at the alias.

use queue_runtime::job;

#[job(name = "mail.welcome", alias = "mail.welcome")]
async fn send() {}

fn main() {}
