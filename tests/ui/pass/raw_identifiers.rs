//! A job and an argument named by keywords are stored without the `r#`.

use queue_runtime::{Job, job};

#[path = "../support/mod.rs"]
mod support;

#[job(dedupe = "type", idempotency(r#type))]
async fn r#match(r#type: String) {
    drop(r#type);
}

fn main() {
    assert_eq!(MatchJob::DEF.name(), "match");
    let made = r#match::new("a".to_owned());
    assert_eq!(support::stored(&made), r#"{"type":"a"}"#);
    assert_eq!(made.dedupe_key(), made.idempotency_key());
    assert_eq!(format!("{made:?}"), "MatchJob { type: .. }");
}
