//! Six errors: the compiler's own, since no macro can tell where it stands.

use queue_runtime::job;

struct Mailer;

impl Mailer {
    #[job]
    async fn send(user_id: u64) {
        let _ = user_id;
    }
}

fn main() {}
