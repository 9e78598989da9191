//! A job can be declared where it is used, with types that only that place knows.

use queue_runtime::{Job, job};

#[path = "../support/mod.rs"]
mod support;

pub fn main() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Local {
        id: u64,
    }

    #[job(dedupe = "local.id")]
    async fn inner(local: Local) {
        drop(local);
    }

    let made = inner::new(Local { id: 5 });
    assert_eq!(InnerJob::DEF.name(), "inner");
    assert_eq!(made.dedupe_key().as_deref(), Some("[\"5\"]"));
    assert_eq!(support::stored(&made), r#"{"local":{"id":5}}"#);
}
