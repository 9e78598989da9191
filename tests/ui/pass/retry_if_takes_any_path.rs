//! `retry_if` takes a function, a method or a generic function, checked against the job's own error.

use queue_runtime::{Job, job};

#[derive(Debug)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

impl Refused {
    fn is_temporary(&self) -> bool {
        false
    }
}

fn never<A, B>(_: &A) -> bool {
    std::mem::size_of::<B>() == 0
}

#[job(retry_if = Refused::is_temporary)]
async fn by_method() -> Result<(), Refused> {
    Err(Refused)
}

#[job(retry_if = never::<Refused, u8>, retries = 1)]
async fn by_generic_function() -> Result<(), Refused> {
    Err(Refused)
}

pub fn main() {
    assert_eq!(ByMethodJob::DEF.name(), "by_method");
    assert_eq!(ByGenericFunctionJob::DEF.name(), "by_generic_function");
}
