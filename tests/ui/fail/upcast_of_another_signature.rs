//! One error: at the path.

use queue_runtime::{JobError, PayloadFields, job};

fn to_next(fields: &mut PayloadFields) -> Result<(), JobError> {
    let _ = fields;
    Ok(())
}

#[job(schema = 2, upcast = to_next)]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
