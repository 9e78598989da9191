//! The job of the documentation: stored, read back, and called like any function.

use queue_runtime::{Data, Job, JobContext, JobError, job};

#[path = "../support/mod.rs"]
mod support;

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct UserId(u64);

impl queue_runtime::KeyPart for UserId {
    fn write(&self, key: &mut queue_runtime::KeyWriter) {
        self.0.write(key);
    }
}

pub struct Mailer {
    sent: std::sync::Mutex<Vec<String>>,
}

impl Mailer {
    async fn send(&self, email: &str, attempt: u32) -> Result<(), std::io::Error> {
        self.sent.lock().expect("nobody panics while sending").push(format!("{email} {attempt}"));
        Ok(())
    }
}

/// Sends a welcome mail.
#[job(queue = "mail", retries = 5, timeout = "60s", dedupe = "user_id")]
pub async fn send_welcome(
    ctx: JobContext,
    mailer: Data<Mailer>,
    /// Whom to greet.
    user_id: UserId,
    email: &str,
) -> Result<(), JobError> {
    let _ = user_id;
    mailer.send(email, ctx.attempt()).await?;
    Ok(())
}

pub fn main() {
    assert_eq!(SendWelcomeJob::DEF.name(), "send_welcome");
    assert_eq!(SendWelcomeJob::DEF.max_attempts(), 6);
    assert_eq!(SendWelcomeJob::DEF.declared_at().package, env!("CARGO_PKG_NAME"));

    let made = send_welcome::new(UserId(7), "a@b.c");
    let literal = SendWelcomeJob { user_id: UserId(7), email: "a@b.c".into() };
    let stored = support::stored(&made);
    assert_eq!(stored, support::stored(&literal));
    assert_eq!(stored, r#"{"user_id":7,"email":"a@b.c"}"#);
    let back: SendWelcomeJob = support::read(&stored);
    assert_eq!((back.user_id, back.email.as_str()), (UserId(7), "a@b.c"));
    assert_eq!(made.dedupe_key().as_deref(), Some("[\"7\"]"));

    let mailer = Data::new(Mailer { sent: Default::default() });
    let called = send_welcome(JobContext::for_test(), mailer.clone(), UserId(7), "a@b.c");
    support::block_on(called).expect("the mailer of the case takes everything");
    assert_eq!(*mailer.sent.lock().expect("nobody panicked"), ["a@b.c 1"]);
}
