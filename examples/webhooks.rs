//! A job per order row posts JSON to a partner who is busy, deaf or strict, and every order is
//! delivered once, even when the worker is killed on the way.
//!
//! The parent process imports the file, plays the partner and watches; the worker is a process of
//! its own, started from this same program. They meet in the queue's SQLite file and over HTTP.
//! Set `RUST_LOG=info` to see each attempt.
//!
// run: -- examples/data/orders.csv
// run: -- examples/data/orders.csv --kill

/// What is not about jobs, in the folder of this name.
mod webhooks {
    pub(crate) mod arguments;
    pub(crate) mod orders;
    pub(crate) mod import;
    pub(crate) mod process;
    pub(crate) mod receiver;
    pub(crate) mod http;
    pub(crate) mod report;
}

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use queue_runtime::{Data, JobContext, JobError, Queue, StatusError, Worker, job};
use webhooks::arguments::{Role, role};
use webhooks::import::import;
use webhooks::orders::Order;
use webhooks::process::{WorkerProcess, parent_is_done};
use webhooks::receiver::Receiver;
use webhooks::{http, report};

/// Where the partner listens.
struct Partner(SocketAddr);

// `idempotency` makes an order one job however often it is imported. The same key goes to the
// partner: a delivery whose answer got lost is repeated, and the partner must know it again.
#[job(
    retries = 8,
    timeout = "1s",
    backoff = "exponential(200ms, max = 2s, jitter = 20%)",
    idempotency = "order.order_id"
)]
async fn post_order(ctx: JobContext, partner: Data<Partner>, order: Order) -> Result<(), JobError> {
    let key = ctx.idempotency_key().unwrap_or(&order.order_id);
    let body = serde_json::to_string(&order)?;
    match http::post(partner.0, key, body)
        .await
        .map_err(JobError::retry)?
    {
        (200, _) => Ok(()),
        // The partner will never take this order: no use in asking again.
        (400, rule) => Err(JobError::permanent(rule)),
        // The runtime knows which statuses pass, such as 503, and which do not.
        (status, _) => Err(StatusError(status).into()),
    }
}

/// The worker's process. The jobs of a killed worker come back when their lease has run out: here
/// after two seconds, by default after a minute, since nobody should kill workers on purpose.
async fn work(database: &str, partner: &str) -> Result<()> {
    let queue = Queue::open(database).await?;
    Worker::builder(&queue)
        .data(Partner(partner.parse()?))
        .concurrency(20)
        .lease(Duration::from_secs(2))
        .heartbeat(Duration::from_millis(500))
        .rescue_every(Duration::from_millis(500))
        .run_until(parent_is_done())
        .await?;
    queue.close().await;
    Ok(())
}

/// The parent's process.
async fn supervise(orders: &[Order], kills: usize) -> Result<()> {
    let begun = Instant::now();
    let folder = tempfile::tempdir()?;
    let database = format!("sqlite://{}/jobs.db", folder.path().display());
    let queue = Queue::open(&database).await?;
    let receiver = Receiver::start().await?;

    // Somebody imports the file twice. The second time makes no jobs.
    let jobs = import(&queue, orders).await?;
    let again = import(&queue, orders).await?;
    ensure!(
        again == jobs,
        "the second import was not answered with the jobs of the first"
    );

    // Killed in the middle of its work, the worker takes jobs with it whose order was shipped and
    // jobs whose order was not. Nobody can tell which: all of them run again.
    let mut worker = WorkerProcess::start(&database, receiver.address)?;
    let mut killed = 0;
    while killed < kills {
        tokio::select! {
            () = receiver.shipped(orders.len() * (killed + 1) / (kills + 1)) => {}
            nothing_left = worker.drain(&queue) => nothing_left?,
        }
        worker.kill().await?;
        killed += 1;
        let shipped = receiver.shipments().len();
        println!("killed the worker once {shipped} orders were shipped");
        worker = WorkerProcess::start(&database, receiver.address)?;
    }

    worker.drain(&queue).await?;
    worker.stop().await?;
    report::gather(&queue, &jobs, &receiver, killed)
        .await?
        .print(begun.elapsed())
}

#[tokio::main]
async fn main() -> ExitCode {
    // Attempts that fail are this program's point, so they are not logged unless asked for.
    let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| "off".to_owned());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let (ended, failure) = match role() {
        Ok(Role::Parent { orders, kills }) => (supervise(&orders, kills).await, 1),
        Ok(Role::Worker { database, partner }) => (work(&database, &partner).await, 1),
        Err(refused) => (Err(refused), 2),
    };
    let Err(error) = ended else {
        return ExitCode::SUCCESS;
    };
    eprintln!("webhooks: {error:#}");
    ExitCode::from(failure)
}
