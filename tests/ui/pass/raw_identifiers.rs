//! A job and an argument named by keywords are stored without the `r#`.

use queue_runtime::{Job, Refreshed, job};

#[path = "../support/mod.rs"]
mod support;

#[job(dedupe = "type", idempotency(r#type), cache = "of-{type}", version = "fn")]
async fn r#match(r#type: String, r#fn: u64) -> Refreshed<String> {
    Refreshed::at(r#fn, r#type)
}

fn main() {
    assert_eq!(MatchJob::DEF.name(), "match");
    let made = r#match::new("a".to_owned(), 3);
    assert_eq!(support::stored(&made), r#"{"type":"a","fn":3}"#);
    assert_eq!(made.dedupe_key(), made.idempotency_key());
    assert_eq!(made.cache_key().as_deref(), Some("of-a"));
    assert_eq!(made.cache_version(), Some(3));
    assert_eq!(format!("{made:?}"), "MatchJob { type: .., fn: .. }");
}
