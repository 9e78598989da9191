//! One error: the variants are named.

use queue_runtime::{Classify};

#[derive(Classify)]
#[job(permanent)]
enum MailError {
    NoSuchAddress,
}

fn main() {}
