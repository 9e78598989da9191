//! An argument type needs serde and nothing else: no `Debug`, no `Clone`, no `PartialEq`.

use queue_runtime::job;

#[path = "../support/mod.rs"]
mod support;

#[derive(serde::Serialize, serde::Deserialize)]
struct Bare {
    secret: String,
}

#[job]
async fn keeps(bare: Bare) {
    drop(bare);
}

pub fn main() {
    let made = keeps::new(Bare { secret: "hunter2".to_owned() });
    assert_eq!(format!("{made:?}"), "KeepsJob { bare: .. }");
    let back: KeepsJob = support::read(&support::stored(&made));
    assert_eq!(back.bare.secret, "hunter2");
}
