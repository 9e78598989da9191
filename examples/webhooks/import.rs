//! Brings the orders into the queue.

use anyhow::{Context, Result};
use queue_runtime::{JobId, Queue};

use super::orders::Order;
use crate::PostOrderJob;

/// Orders in one transaction: a bulk takes ten times as many.
const BULK: usize = 1_000;

/// Enqueues every order and returns the job of each, in order; an order that was imported before
/// is answered with the job that it has.
pub(crate) async fn import(queue: &Queue, orders: &[Order]) -> Result<Vec<(String, JobId)>> {
    let mut jobs = Vec::with_capacity(orders.len());
    let mut known = 0;
    for orders in orders.chunks(BULK) {
        let rows = orders.iter().cloned();
        let answers = queue
            .enqueue_all(rows.map(|order| PostOrderJob { order }))
            .await?;
        for (order, answer) in orders.iter().zip(answers) {
            // The same id with other contents is a conflict, and the error says so.
            let enqueued = answer.with_context(|| format!("order {}", order.order_id))?;
            known += usize::from(enqueued.duplicate);
            jobs.push((order.order_id.clone(), enqueued.id));
        }
    }
    println!(
        "imported {} orders, of which {known} were known",
        jobs.len()
    );
    Ok(jobs)
}
