//! One error: at the return type.

use queue_runtime::job;

struct MyErr;

#[job]
async fn send() -> Result<(), MyErr> {
    Err(MyErr)
}

fn main() {}
