//! One error: at `upcast`, since no payload has a schema below 1.

use queue_runtime::{JobError, PayloadFields, job};

fn to_next(_: u32, _: &mut PayloadFields) -> Result<(), JobError> {
    Ok(())
}

#[job(schema = 1, upcast = to_next)]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
