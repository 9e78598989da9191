//! `derive(Debug)` replaces the `Debug` without values.

use queue_runtime::job;

#[job(derive(std::fmt::Debug, Clone, PartialEq, Eq, Hash))]
async fn open(user_id: u64) {
    let _ = user_id;
}

pub fn main() {
    let made = open::new(7);
    assert_eq!(format!("{made:?}"), "OpenJob { user_id: 7 }");
    assert_eq!(made.clone(), made);
}
