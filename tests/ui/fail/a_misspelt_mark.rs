//! One error: the nearest mark is named.

use queue_runtime::{Classify};

#[derive(Classify)]
enum MailError {
    #[job(permanant)]
    NoSuchAddress,
}

fn main() {}
