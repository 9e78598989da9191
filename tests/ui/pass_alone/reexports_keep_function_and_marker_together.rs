//! Function and marker travel together through imports, renames and globs.

use queue_runtime::Job as _;

#[path = "../support/mod.rs"]
mod support;

mod send_welcome {
    #[queue_runtime::job]
    pub async fn send_welcome(user_id: u64) -> Result<u64, String> {
        Ok(user_id)
    }
}

mod prelude {
    pub use crate::send_welcome::send_welcome as greet;
}

use prelude::*;

fn main() {
    assert_eq!(support::block_on(greet(7)), Ok(7));
    assert_eq!(greet::new(7).user_id, 7);
    assert_eq!(send_welcome::SendWelcomeJob::DEF.name(), "send_welcome");
}
