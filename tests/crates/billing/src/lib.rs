//! Jobs of a library whose manifest gives the runtime another name.

use background::{Data, EnqueueError, JobContext, job};
use mail_jobs::{Address, Outbox};

/// Another library's job, passed on with its payload.
pub use mail_jobs::{SendReceiptJob, send_receipt};

/// Takes the money, then has it confirmed.
#[job(crate = ::background, name = "billing.charge", dedupe(to.name), schema = 2, upcast = to_next_schema)]
pub async fn charge(ctx: JobContext, to: Address, cents: u64) -> Result<(), EnqueueError> {
    send_receipt::enqueue(&ctx, to, cents).await?;
    Ok(())
}

fn to_next_schema(
    _: u32,
    fields: &mut background::PayloadFields,
) -> Result<(), background::JobError> {
    let euros: u64 = fields.get("euros")?;
    fields.remove("euros");
    fields.set("cents", &(euros * 100))?;
    Ok(())
}

pub mod upkeep {
    //! A job whose function has the name of another library's.

    use super::{Data, Outbox, job};

    /// Removes what is old.
    #[job(crate = ::background, name = "billing.clean_up")]
    pub async fn clean_up(#[inject] outbox: Data<Outbox>) {
        if let Ok(mut outbox) = outbox.lock() {
            outbox.push("billing is clean".to_owned());
        }
    }
}
