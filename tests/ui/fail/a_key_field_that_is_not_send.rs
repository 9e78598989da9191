//! One error: the payload is refused.

use queue_runtime::job;

#[job]
async fn send(text: std::rc::Rc<str>) {
    drop(text);
}

fn main() {}
