//! One error: at `upcast`.

use queue_runtime::{JobError, PayloadFields, job};

fn to_next(_: u32, _: &mut PayloadFields) -> Result<(), JobError> {
    Ok(())
}

#[job(upcast = to_next)]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
