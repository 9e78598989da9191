//! One error: `Data<..>` is proposed.

use queue_runtime::job;

struct Mailer;

#[job]
async fn send(#[inject] mailer: Mailer) {
    drop(mailer);
}

fn main() {}
