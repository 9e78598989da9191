//! Derives on the payload struct, serde's among them: what they write is what is stored.

use queue_runtime::{Job, job};

#[path = "../support/mod.rs"]
mod support;

/// Sends a code.
#[job(derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize))]
async fn send_code(
    /// Who asked for it.
    user_id: u64,
    code: &str,
    expires: Option<u32>,
) {
    let _ = (user_id, code, expires);
}

pub fn main() {
    let job = SendCodeJob {
        user_id: 7,
        code: "c0de".into(),
        expires: None,
    };
    let stored = support::stored(&job);
    assert_eq!(serde_json::to_string(&job).expect("serde writes it"), stored);
    assert_eq!(serde_json::from_str::<SendCodeJob>(&stored).ok(), Some(job.clone()));
    assert_eq!(SendCodeJob::from_payload(&stored), Ok(job));
}
