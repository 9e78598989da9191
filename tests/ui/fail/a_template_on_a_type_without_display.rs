//! One error: the compiler reports it inside the string.

use queue_runtime::{KeyPart, KeyWriter, job};

#[derive(serde::Serialize, serde::Deserialize)]
struct UserId(u64);

impl KeyPart for UserId {
    fn write(&self, key: &mut KeyWriter) {
        self.0.write(key);
    }
}

#[job(dedupe = "user-{user_id}")]
async fn send(user_id: UserId) {
    let _ = user_id.0;
}

fn main() {}
