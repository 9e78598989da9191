//! Payload names follow the function's name and never say `Job` twice.

use queue_runtime::{Job, job};

#[job]
async fn send_2fa_code() {}

#[job]
async fn cleanup_job() {}

#[job(name = "mail.digest", alias = "digest", alias = "mail.summary", payload = Digest)]
async fn weekly() {}

pub fn main() {
    assert_eq!(Send2faCodeJob::DEF.name(), "send_2fa_code");
    assert_eq!(CleanupJob::DEF.name(), "cleanup_job");
    assert_eq!(Digest::DEF.name(), "mail.digest");
    let _: Digest = weekly::new();
}
