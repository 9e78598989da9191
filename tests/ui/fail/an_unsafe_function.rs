//! One error: `unsafe` goes into the body.

use queue_runtime::job;

#[job]
async unsafe fn send() {}

fn main() {}
