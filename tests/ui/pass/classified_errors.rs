//! `derive(Classify)` marks variants, also of generic and of plain types, and a job may return them.

use queue_runtime::{Class, Classify, job};

#[derive(Debug, Classify)]
#[allow(dead_code)]
enum MailError {
    #[job(permanent)]
    NoSuchAddress { address: String },
    #[job(retry)]
    Busy(u32),
    Other,
}

impl std::fmt::Display for MailError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for MailError {}

#[derive(Classify)]
#[job(permanent)]
struct Wrapped<T: Clone>(T);

#[derive(Classify)]
struct Plain;

#[derive(Classify)]
#[job(crate = ::queue_runtime)]
enum Never {}

#[job]
async fn send() -> Result<(), MailError> {
    Err(MailError::Other)
}

fn main() {
    assert_eq!(MailError::NoSuchAddress { address: "a".into() }.class(), Class::Permanent);
    assert_eq!(MailError::Busy(3).class(), Class::Retry);
    assert_eq!(MailError::Other.class(), Class::Unknown);
    assert_eq!(Wrapped(1).class(), Class::Permanent);
    assert_eq!(Plain.class(), Class::Unknown);
    let _: fn(&Never) -> Class = Never::class;
    let _ = send();
}
