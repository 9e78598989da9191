//! Four errors: the payload is refused first; the rest is the compiler's.

use queue_runtime::job;

#[job]
async fn send(text: std::rc::Rc<str>) {
    drop(text);
}

fn main() {}
