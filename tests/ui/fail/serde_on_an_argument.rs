//! Three errors: each says what to write here instead.

use queue_runtime::{Data, job};

#[job]
async fn send(
    #[serde(rename = "uid")] user_id: u64,
    #[serde(with = "hex")] body: Vec<u8>,
    #[serde(default)] limit: Data<u32>,
) {
    let _ = (user_id, body, limit);
}

fn main() {}
