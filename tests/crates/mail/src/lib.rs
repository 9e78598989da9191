//! Jobs of a library: another library enqueues them, and a program that names neither runs them.

use queue_runtime::{Data, JobError, job};
use serde::{Deserialize, Serialize};

/// What was sent.
pub type Outbox = std::sync::Mutex<Vec<String>>;

/// Where a mail goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Address {
    /// The person's name.
    pub name: String,
}

/// Thanks somebody for money.
#[job(name = "mail.receipt", queue = "mail")]
pub async fn send_receipt(to: Address, cents: u64, outbox: Data<Outbox>) -> Result<(), JobError> {
    let mut outbox = outbox
        .lock()
        .map_err(|_| "a sender panicked")
        .map_err(JobError::retry)?;
    outbox.push(format!("{}: {cents}", to.name));
    Ok(())
}

pub mod upkeep {
    //! A job of a module, whose function is called as one of another crate is.

    use queue_runtime::{Data, job};

    use super::Outbox;

    /// Removes what is old.
    #[job(name = "mail.clean_up", queue = "mail")]
    pub async fn clean_up(#[inject] outbox: Data<Outbox>) {
        if let Ok(mut outbox) = outbox.lock() {
            outbox.push("mail is clean".to_owned());
        }
    }
}
