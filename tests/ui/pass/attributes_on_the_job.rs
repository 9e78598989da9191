//! Other attributes stay on the function; a false `#[cfg]` takes the generated items with it.
#![deny(warnings)]

use queue_runtime::{Job, job};

#[deprecated(note = "use the other one")]
#[job]
pub async fn old(#[allow(unused_variables)] unused: u8) {}

#[job]
#[allow(clippy::unused_async)]
#[cfg(not(any()))]
pub async fn here() {}

#[job]
#[cfg(any())]
pub async fn gone(missing: Missing) {}

// The same name in another shape: it would clash if anything of `gone` were left.
#[allow(dead_code)]
pub struct GoneJob;

pub fn main() {
    assert_eq!(OldJob::DEF.name(), "old");
    assert_eq!(HereJob::DEF.name(), "here");
}
