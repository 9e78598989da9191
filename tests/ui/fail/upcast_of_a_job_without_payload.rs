//! One error: at `upcast`, which has nothing to change.

use queue_runtime::{JobContext, JobError, PayloadFields, job};

fn to_next(_: u32, _: &mut PayloadFields) -> Result<(), JobError> {
    Ok(())
}

#[job(schema = 2, upcast = to_next)]
async fn nightly(ctx: JobContext) {
    let _ = ctx;
}

fn main() {}
