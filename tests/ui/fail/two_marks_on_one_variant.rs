//! One error: one is asked for.

use queue_runtime::{Classify};

#[derive(Classify)]
enum MailError {
    #[job(permanent, retry)]
    NoSuchAddress,
}

fn main() {}
