//! Jobs without a payload, with and without injected arguments.

use queue_runtime::{Data, JobContext, job};

#[path = "../support/mod.rs"]
mod support;

#[job]
async fn nightly() {}

#[job]
async fn sweep(_: JobContext, mut limit: Data<u32>) -> Result<u32, std::io::Error> {
    limit = limit.clone();
    Ok(*limit)
}

pub fn main() {
    assert_eq!(support::stored(&nightly::new()), r#"{}"#);
    let back: SweepJob = support::read(r#"{"unknown":1}"#);
    assert_eq!(format!("{back:?}"), "SweepJob");
    let called = support::block_on(sweep(JobContext::for_test(), Data::new(4)));
    assert_eq!(called.expect("the case cannot fail"), 4);
}
