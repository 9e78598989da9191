//! Three errors: each with its owned counterpart.

use queue_runtime::job;

#[derive(serde::Serialize, serde::Deserialize)]
struct Conf;

#[job]
async fn send(conf: &Conf, bytes: &[u8], text: &mut String) {
    let _ = (conf, bytes, text);
}

fn main() {}
