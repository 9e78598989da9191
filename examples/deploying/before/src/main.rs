//! The release of an application before a change: four jobs, a producer and a worker.

#[path = "../../program.rs"]
mod program;

use program::Ledger;
use queue_runtime::{Data, EnqueueError, Enqueued, JobContext, Queue, job};

#[job(idempotency = "invoice")]
async fn send_invoice(
    invoice: i64,
    email: String,
    ctx: JobContext,
    ledger: Data<Ledger>,
) -> std::io::Result<()> {
    let _ = (invoice, email);
    ledger.note(&ctx)
}

#[job(idempotency = "sku")]
async fn sync_stock(
    sku: String,
    count: u32,
    ctx: JobContext,
    ledger: Data<Ledger>,
) -> std::io::Result<()> {
    let _ = (sku, count);
    ledger.note(&ctx)
}

#[job(idempotency = "day")]
async fn old_report(day: String, ctx: JobContext, ledger: Data<Ledger>) -> std::io::Result<()> {
    let _ = day;
    ledger.note(&ctx)
}

#[job(idempotency = "user")]
async fn digest(user: i64, ctx: JobContext, ledger: Data<Ledger>) -> std::io::Result<()> {
    let _ = user;
    ledger.note(&ctx)
}

/// Request number `n` of a producer: each job in turn.
async fn request(queue: &Queue, n: i64) -> Result<Enqueued, EnqueueError> {
    match n % 4 {
        0 => send_invoice::enqueue(queue, n, format!("{n}@example.org")).await,
        1 => sync_stock::enqueue(queue, format!("sku-{n}"), 7).await,
        2 => old_report::enqueue(queue, format!("day-{n}")).await,
        _ => digest::enqueue(queue, n).await,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    program::run("before", request).await
}
