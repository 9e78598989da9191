//! One error: at the function, with the value and the await.

use queue_runtime::job;

async fn pause() {}

#[job]
async fn send() {
    let counter = std::rc::Rc::new(1);
    pause().await;
    drop(counter);
}

fn main() {}
