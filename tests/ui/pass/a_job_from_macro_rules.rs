//! A `macro_rules!` can write jobs, and pass on names, types, literals and whole signatures.

use queue_runtime::{Job, job};

#[path = "../support/mod.rs"]
mod support;

macro_rules! declare {
    ($name:ident, $payload:ident, $arg:ident: $ty:ty, $key:literal, $retries:literal) => {
        #[job(dedupe = $key, retries = $retries, payload = $payload, timeout = "30s")]
        pub async fn $name($arg: $ty, fixed: u32) -> Result<String, std::io::Error> {
            Ok(format!("{} {}", $arg, fixed))
        }
    };
}

declare!(borrowing, Borrowing, email: &str, "mail-{email}", 3);
declare!(listing, Listing, user_id: u64, "user_id, fixed", 0);

macro_rules! whole {
    ($($item:tt)*) => { #[job] $($item)* };
}

whole! { async fn plain(text: String) { drop(text); } }

pub fn main() {
    let made = borrowing::new("a@b.c", 1);
    assert_eq!(made.dedupe_key().as_deref(), Some("mail-a@b.c"));
    assert_eq!(listing::new(7, 1).dedupe_key().as_deref(), Some("[\"7\",\"1\"]"));
    let called = support::block_on(borrowing("a@b.c", 1)).expect("the case cannot fail");
    assert_eq!(called, "a@b.c 1");
    assert_eq!(PlainJob::DEF.name(), "plain");
}
