//! One error: at the path, since an upcast says what is wrong with a `JobError`.

use queue_runtime::{PayloadFields, job};

mod upcasts {
    pub fn to_next(_: u32, _: &mut super::PayloadFields) -> Result<(), std::fmt::Error> {
        Ok(())
    }
}

#[job(schema = 2, upcast = upcasts::to_next)]
async fn send(user_id: u64) {
    let _ = user_id;
}

fn main() {}
