//! `mut` belongs to the function alone.

use queue_runtime::job;

#[path = "../support/mod.rs"]
mod support;

#[job]
async fn count_up(mut count: u32) -> Result<u32, std::io::Error> {
    count += 1;
    Ok(count)
}

pub fn main() {
    assert_eq!(support::block_on(count_up(1)).expect("the case cannot fail"), 2);
    assert_eq!(count_up::new(1).count, 1);
}
