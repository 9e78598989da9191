//! The release of the same application after the change: each job has changed in its own way.

#[path = "../../program.rs"]
mod program;

use program::Ledger;
use queue_runtime::{
    Data, EnqueueError, Enqueued, JobContext, JobError, PayloadFields, Queue, job,
};

// Another shape: an invoice goes to several recipients, where it went to one address.
#[job(idempotency = "invoice", schema = 2, upcast = to_next_invoice)]
async fn send_invoice(
    invoice: i64,
    recipients: Vec<String>,
    ctx: JobContext,
    ledger: Data<Ledger>,
) -> std::io::Result<()> {
    let _ = (invoice, recipients);
    ledger.note(&ctx)
}

fn to_next_invoice(from: u32, fields: &mut PayloadFields) -> Result<(), JobError> {
    // Called once per step; the next schema adds its own.
    if from == 1 {
        let email: String = fields.get("email")?;
        fields.remove("email");
        fields.set("recipients", &[email])?;
    }
    Ok(())
}

// The same shape: a wider number, and an argument that may be missing.
#[job(idempotency = "sku")]
async fn sync_stock(
    sku: String,
    count: i64,
    warehouse: Option<String>,
    ctx: JobContext,
    ledger: Data<Ledger>,
) -> std::io::Result<()> {
    let _ = (sku, count, warehouse);
    ledger.note(&ctx)
}

// A new job. `old_report`, whose place it takes, is gone.
#[job(idempotency = "day")]
async fn new_report(
    day: String,
    format: String,
    ctx: JobContext,
    ledger: Data<Ledger>,
) -> std::io::Result<()> {
    let _ = (day, format);
    ledger.note(&ctx)
}

// A new name: jobs that were stored under the former one run here too.
#[job(alias = "digest", idempotency = "user")]
async fn send_digest(user: i64, ctx: JobContext, ledger: Data<Ledger>) -> std::io::Result<()> {
    let _ = user;
    ledger.note(&ctx)
}

/// Request number `n` of a producer: each job in turn.
async fn request(queue: &Queue, n: i64) -> Result<Enqueued, EnqueueError> {
    match n % 4 {
        0 => send_invoice::enqueue(queue, n, vec![format!("{n}@example.org")]).await,
        1 => sync_stock::enqueue(queue, format!("sku-{n}"), 7, Some("north".to_owned())).await,
        2 => new_report::enqueue(queue, format!("day-{n}"), "pdf".to_owned()).await,
        _ => send_digest::enqueue(queue, n).await,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    program::run("after", request).await
}
