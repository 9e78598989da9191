//! One error: a job is a free function.

use queue_runtime::job;

struct Mailer;

impl Mailer {
    #[job]
    async fn send(&self, user_id: u64) {
        let _ = user_id;
    }
}

fn main() {}
