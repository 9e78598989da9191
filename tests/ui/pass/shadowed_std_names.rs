//! A module that calls its own types `Option`, `String` or `Ok`, or has no prelude, can still hold jobs.
#![allow(dead_code, non_snake_case, non_upper_case_globals)]

#[path = "../support/mod.rs"]
mod support;

mod shadowing {
    pub struct Option;
    pub struct Result;
    pub struct String;
    pub struct Vec;
    pub struct Box;
    pub struct Duration;
    pub struct Job;
    pub struct Field;
    pub trait Into {}
    pub trait From {}
    pub trait Default {}
    pub fn Ok() {}
    pub fn Err() {}
    pub fn Some() {}
    pub const None: u8 = 0;
    pub mod std {}
    pub mod core {}
    pub fn decode() {}
    pub fn run() {}

    #[queue_runtime::job(retries = 2, timeout = "none", backoff = "fixed(5s)", dedupe = "u-{user_id}")]
    pub async fn shadowed(
        #[arg(default)] user_id: u64,
        email: &str,
    ) -> ::std::result::Result<(), ::std::io::Error> {
        let _ = (user_id, email);
        ::std::result::Result::Ok(())
    }
}

mod bare {
    #![no_implicit_prelude]

    #[::queue_runtime::job(dedupe(name), idempotency = "n-{name}", retry_if = temporary)]
    pub async fn without_prelude(name: &str) -> ::std::result::Result<(), ::std::io::Error> {
        let _ = name;
        ::std::result::Result::Ok(())
    }

    fn temporary(_: &::std::io::Error) -> bool {
        true
    }
}

fn main() {
    use queue_runtime::Job as _;
    let made = shadowing::shadowed::new(7, "a");
    assert_eq!(made.dedupe_key().as_deref(), Some("u-7"));
    assert_eq!(support::stored(&made), r#"{"user_id":7,"email":"a"}"#);
    let made = bare::without_prelude::new("a");
    assert_eq!(made.dedupe_key().as_deref(), Some(r#"["a"]"#));
}
