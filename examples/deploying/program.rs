//! What did not change between the two releases: the arguments, the producer, the worker, and the
//! ledger of what ran.
//!
//! `<program> migrate|produce|work --database-url <url>`; `produce` takes `--count <n>` and
//! `--from <n>`, `work` takes `--ledger <file>`. The last line is one JSON object.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::try_join_all;
use queue_runtime::{
    Data, EnqueueError, Enqueued, JobContext, Queue, Worker, WorkerError, shutdown_signal,
};

/// Requests of a producer at the same time.
const AT_ONCE: i64 = 20;

/// The file that the workers of both releases append to: a line `<job id> <job type> <release>` for
/// each run.
pub(crate) struct Ledger {
    file: File,
    release: &'static str,
    lines: AtomicU64,
}

impl Ledger {
    /// Notes a run by one write, so that lines of several processes do not mix.
    pub(crate) fn note(&self, ctx: &JobContext) -> std::io::Result<()> {
        let line = format!("{} {} {}\n", ctx.job_id(), ctx.job_type(), self.release);
        (&self.file).write_all(line.as_bytes())?;
        self.lines.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Plays the part that the arguments name. `request` makes one request of this release.
pub(crate) async fn run(
    release: &'static str,
    request: impl AsyncFn(&Queue, i64) -> Result<Enqueued, EnqueueError>,
) -> Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    let opening = Queue::open(argument("--database-url")?);
    let role = std::env::args().nth(1).unwrap_or_default();
    let report = match role.as_str() {
        "migrate" => {
            opening.migrate().await?.close().await;
            String::new()
        }
        "produce" => {
            let (from, count): (i64, i64) = (number("--from")?, number("--count")?);
            produce(&opening.await?, from..from + count, request).await?
        }
        "work" => work(&opening.await?, release, &argument("--ledger")?).await?,
        role => bail!("expected `migrate`, `produce` or `work`, found {role:?}"),
    };
    println!(r#"{{"release":"{release}","role":"{role}"{report}}}"#);
    Ok(())
}

/// Makes requests. Making one again is harmless: its idempotency key answers with the job there is.
async fn produce(
    queue: &Queue,
    numbers: std::ops::Range<i64>,
    request: impl AsyncFn(&Queue, i64) -> Result<Enqueued, EnqueueError>,
) -> Result<String> {
    let (mut accepted, mut repeated) = (0, 0);
    for from in numbers.clone().step_by(AT_ONCE as usize) {
        let some = from..numbers.end.min(from + AT_ONCE);
        for sent in try_join_all(some.map(|n| request(queue, n))).await? {
            match sent.duplicate {
                true => repeated += 1,
                false => accepted += 1,
            }
        }
    }
    queue.close().await;
    Ok(format!(r#","accepted":{accepted},"repeated":{repeated}"#))
}

/// Works until SIGTERM. A service would call `run()` and leave out the line `ready`.
async fn work(queue: &Queue, release: &'static str, ledger: &str) -> Result<String> {
    let file = OpenOptions::new().create(true).append(true).open(ledger);
    let ledger = Data::new(Ledger {
        file: file.with_context(|| format!("open {ledger}"))?,
        release,
        lines: AtomicU64::new(0),
    });
    let worker = Worker::builder(queue)
        .name(release)
        .shared(ledger.clone())
        .concurrency(8)
        .lease(Duration::from_secs(20))
        .heartbeat(Duration::from_secs(2))
        .poll(Duration::from_millis(20));
    let ended: Result<(), WorkerError> = worker.run_until(told_to_stop()).await;
    ended?;
    queue.close().await;
    Ok(format!(
        r#","ran":{}"#,
        ledger.lines.load(Ordering::Relaxed)
    ))
}

/// Says `ready` once SIGTERM would be heard, and waits for it.
async fn told_to_stop() {
    tokio::select! {
        biased;
        () = shutdown_signal() => {}
        () = async { println!("ready"); std::future::pending().await } => {}
    }
}

fn argument(name: &str) -> Result<String> {
    let value = std::env::args().skip_while(|word| word != name).nth(1);
    value.with_context(|| format!("{name} is missing"))
}

fn number(name: &str) -> Result<i64> {
    let value = argument(name)?;
    value
        .parse()
        .with_context(|| format!("{name} {value:?}: expected a number"))
}
