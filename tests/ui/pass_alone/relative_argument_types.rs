//! `self::`, `super::` and private types mean in the generated items what they mean in the function.
#![deny(warnings)]

#[path = "../support/mod.rs"]
mod support;

#[derive(serde::Serialize, serde::Deserialize)]
struct Outer(u32);

mod jobs {
    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct Inner(pub(super) u32);

    #[queue_runtime::job]
    pub(super) async fn related(outer: super::Outer, inner: self::Inner) -> Result<u32, String> {
        Ok(outer.0 + inner.0)
    }

    #[queue_runtime::job]
    pub(crate) async fn wide(number: u32) {
        let _ = number;
    }

    #[queue_runtime::job]
    pub(in crate::jobs) async fn narrow(number: u32) {
        let _ = number;
    }

    pub(crate) fn narrow_number() -> u32 {
        narrow::new(3).number
    }
}

// One import brings the function and the marker.
use jobs::related;

fn main() {
    let sum = support::block_on(related(Outer(1), jobs::Inner(2)));
    assert_eq!(sum, Ok(3));
    assert_eq!(related::new(Outer(1), jobs::Inner(2)).outer.0, 1);
    assert_eq!(jobs::wide::new(2).number, 2);
    assert_eq!(jobs::narrow_number(), 3);
}
