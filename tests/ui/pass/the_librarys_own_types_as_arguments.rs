//! A job can take the id of another job and an instant, and use both in a key.

use queue_runtime::{Job, JobId, Timestamp, job};

#[path = "../support/mod.rs"]
mod support;

#[job(dedupe = "parent, since")]
async fn follow(parent: JobId, since: Timestamp, until: Option<Timestamp>) {
    let _ = (parent, since, until);
}

pub fn main() {
    let parent: JobId = "0193b5a0-7c3e-7000-8000-000000000000".parse().expect("a UUID");
    let made = follow::new(parent, Timestamp::from_millis(1_796_000_000_123), None);
    let stored = support::stored(&made);
    assert_eq!(
        stored,
        r#"{"parent":"0193b5a0-7c3e-7000-8000-000000000000","since":"2026-11-30T00:53:20.123Z","until":null}"#
    );
    let back: FollowJob = support::read(&stored);
    assert_eq!((back.parent, back.since, back.until), (made.parent, made.since, made.until));
    let key = r#"["0193b5a0-7c3e-7000-8000-000000000000","2026-11-30T00:53:20.123Z"]"#;
    assert_eq!(made.dedupe_key().as_deref(), Some(key));

    for wrong in [
        r#"{"parent":"not for logs","since":"2026-11-30T00:53:20Z"}"#,
        r#"{"parent":"0193b5a0-7c3e-7000-8000-000000000000","since":"not for logs"}"#,
    ] {
        let error = FollowJob::from_stored(wrong, 1).expect_err("it cannot be read").to_string();
        assert!(error.contains("invalid value") && !error.contains("for logs"), "{error}");
    }
}
