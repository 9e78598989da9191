//! One error: `#[inject]` is named.

use queue_runtime::{Data, job};

struct Mailer;
type Shared = Data<Mailer>;

#[job]
async fn send(mailer: Shared) {
    drop(mailer);
}

fn main() {}
