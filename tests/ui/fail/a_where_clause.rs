//! One error: at the clause.

use queue_runtime::job;

#[job]
async fn send(user_id: u64)
where
    u64: Copy,
{
    let _ = user_id;
}

fn main() {}
