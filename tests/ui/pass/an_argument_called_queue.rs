//! Argument names never meet the names inside the generated functions.

use queue_runtime::{Enqueue, Queue, job};

#[path = "../support/mod.rs"]
mod support;

#[job(dedupe = "queue, payload, w, r, k, cx, f, value, error, class, call")]
#[allow(clippy::too_many_arguments, clippy::many_single_char_names)]
async fn awkward(
    queue: String,
    payload: u32,
    w: u32,
    r: u32,
    k: u32,
    cx: u32,
    f: u32,
    value: u32,
    error: u32,
    class: u32,
    call: u32,
) {
    drop((queue, payload, w, r, k, cx, f, value, error, class, call));
}

#[allow(dead_code)]
fn enqueues(to: &Queue) -> Enqueue<'_, AwkwardJob> {
    awkward::enqueue(to, "q".to_owned(), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
}

pub fn main() {
    let made = awkward::new("q".to_owned(), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    let back: AwkwardJob = support::read(&support::stored(&made));
    assert_eq!((back.queue.as_str(), back.payload, back.call), ("q", 1, 10));
}
