//! What the processes do: produce requests, or work. Each listens to its input, line by line, and
//! ends when that ends, so that none outlives its supervisor.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::stream::{self, StreamExt as _};
use queue_runtime::job::JobEvent;
use queue_runtime::{EnqueueError, Queue, Retention, Worker, shutdown_signal};
use tokio::sync::mpsc;

use crate::jobs::{self, Kind, Request};
use crate::ledger::{self, Entry, Ledger};
use crate::place::Database;

/// The lease of all workers. The other spans follow from it.
pub const LEASE: Duration = Duration::from_secs(1);

/// Between two renewals.
pub const HEARTBEAT: Duration = Duration::from_millis(250);

/// Between two looks for lost leases.
pub const RESCUE: Duration = Duration::from_millis(250);

/// Requests of one producer at the same time.
const AT_ONCE: usize = 8;

/// What a handler finds in its process.
pub struct Site {
    /// Where it writes down what it does.
    pub ledger: Ledger,
    /// The database of the queue, for effects in a transaction.
    pub database: Database,
    /// Ends the wait of held jobs.
    pub go: Go,
}

impl Site {
    /// Tells the supervisor something.
    pub fn say(&self, line: &str) {
        println!("{line}");
    }
}

/// Something that is let go once.
#[derive(Clone)]
pub struct Go(tokio::sync::watch::Sender<bool>);

impl Go {
    fn new() -> Self {
        Self(tokio::sync::watch::Sender::new(false))
    }

    /// Waits until it is let go.
    pub async fn wait(&self) {
        let mut seen = self.0.subscribe();
        // The sender is ours.
        let _ = seen.wait_for(|gone| *gone).await;
    }
}

/// A part of the arguments `<name>=<value>`.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Those of this process, after the first.
    pub fn new(words: impl IntoIterator<Item = String>) -> Self {
        Self(words.into_iter().collect())
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = |word: &'_ String| word.strip_prefix(name)?.strip_prefix('=').map(str::len);
        self.0
            .iter()
            .find_map(|word| value(word).map(|length| &word[word.len() - length..]))
    }

    fn text(&self, name: &str) -> Result<&str> {
        self.get(name).with_context(|| format!("no {name}=…"))
    }

    /// The number of a name, or another if it is not given.
    ///
    /// # Errors
    /// If it is none.
    pub fn number<T: std::str::FromStr>(&self, name: &str, otherwise: T) -> Result<T> {
        match self.get(name) {
            None => Ok(otherwise),
            Some(text) => text
                .parse()
                .map_err(|_| anyhow::anyhow!("{name}={text}: not a number")),
        }
    }
}

/// The lines of the input. When it ends, so does the process.
fn input() -> mpsc::UnboundedReceiver<String> {
    let (heard, lines) = mpsc::unbounded_channel();
    let listen = move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            // Nobody may want to hear it; the end of the input is still to be heard.
            let _ = heard.send(line);
        }
        std::process::exit(3)
    };
    drop(std::thread::spawn(listen));
    lines
}

/// Works until it is told to stop by a signal.
///
/// # Errors
/// The worker's.
pub async fn work(arguments: &Arguments) -> Result<()> {
    let folder = Path::new(arguments.text("folder")?);
    let boot = arguments.text("boot")?;
    let queue = Queue::open(arguments.text("url")?).migrate().await?;
    let go = Go::new();
    let site = Site {
        ledger: Ledger::open(folder, boot)?,
        database: Database::open(arguments.text("url")?, &queue).await?,
        go: go.clone(),
    };
    note_events(
        &queue,
        Ledger::open(folder, boot)?,
        arguments.get("tell").is_some(),
    );
    let mut lines = input();
    drop(tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if line == "go" {
                let _ = go.0.send(true);
            }
        }
    }));
    let mut worker = Worker::builder(&queue)
        .name(boot)
        .lease(LEASE)
        .heartbeat(HEARTBEAT)
        .rescue_every(RESCUE)
        .poll(Duration::from_millis(200))
        .concurrency(arguments.number("concurrency", 16)?)
        .crashes_max(arguments.number("crashes_max", 100)?)
        .data(site);
    if let Some(kept) = arguments.get("kept_ms") {
        let kept = Duration::from_millis(kept.parse()?);
        worker = worker
            .prune_every(Duration::from_millis(200))
            .retention(Retention {
                done: kept,
                cancelled: kept,
                dead_letter: kept,
            });
    }
    jobs::all(worker).run_until(told_to_stop()).await?;
    queue.close().await;
    println!("ended");
    Ok(())
}

/// Waits for the signal, and says so once it would be heard.
async fn told_to_stop() {
    let say_so = async {
        println!("ready");
        std::future::pending().await
    };
    tokio::select! {
        biased;
        () = shutdown_signal() => println!("stopping"),
        () = say_so => {}
    }
}

/// Writes down what the store has said about attempts.
fn note_events(queue: &Queue, ledger: Ledger, tell: bool) {
    let mut events = queue.events();
    drop(tokio::spawn(async move {
        while let Ok(event) = events.recv().await {
            let entry = match event {
                JobEvent::Settled {
                    id, token, state, ..
                } if state.is_final() => Entry::Final(id, token.get(), state),
                JobEvent::Rescued {
                    id, token, state, ..
                } => {
                    if state.is_final() {
                        drop(ledger.note(&Entry::Final(id, token.get(), state)));
                    }
                    Entry::Rescued(id, token.get())
                }
                JobEvent::LeaseLost { id, token } | JobEvent::SettledStale { id, token } => {
                    Entry::Lost(id, token.get())
                }
                _ => continue,
            };
            if ledger.note(&entry).is_err() {
                return;
            }
            if tell {
                println!("{entry}");
            }
        }
    }));
}

/// Makes the requests up to each number that it reads, from where its process before stopped.
///
/// # Errors
/// If the store does not open, or the ledger cannot be written.
pub async fn produce(arguments: &Arguments) -> Result<()> {
    let folder = Path::new(arguments.text("folder")?);
    let (boot, line) = (arguments.text("boot")?, arguments.text("line")?);
    let (first, step): (u64, u64) = (arguments.number("first", 0)?, arguments.number("step", 1)?);
    let seed = arguments.number("seed", 0)?;
    let before = Before::read(folder, line)?;
    let ledger = Ledger::open(folder, boot)?;
    let queue = Queue::open(arguments.text("url")?).migrate().await?;
    let mut lines = input();
    println!("ready");
    let mut n = first;
    while let Some(until) = lines.recv().await {
        let until: u64 = until.parse()?;
        let numbers = (n..until).step_by(step as usize);
        let numbers: Vec<u64> = numbers.collect();
        n += numbers.len() as u64 * step;
        let todo = numbers.into_iter().filter(|n| !before.is_answered(*n));
        let made = stream::iter(todo).map(async |n| {
            let kind = match arguments.get("kind") {
                Some(kind) => Kind::named(kind).context("an unknown kind")?,
                None => Kind::of_load(n, seed),
            };
            request(&queue, &ledger, n, kind, before.id(n)).await
        });
        let mut made = made.buffer_unordered(AT_ONCE);
        while let Some(made) = made.next().await {
            made?;
        }
        println!("made {until}");
    }
    bail!("the input ended")
}

/// Makes one bulk, and ends.
///
/// # Errors
/// As any enqueue.
pub async fn bulk(arguments: &Arguments) -> Result<()> {
    let url = arguments.text("url")?;
    let queue = Queue::open(url).migrate().await?;
    let count = arguments.number("jobs", 1)?;
    match arguments.number("delay_ms", 0)? {
        0 => {
            let database = Database::open(url, &queue).await?;
            jobs::bulk(&queue, &database, count, arguments.get("in_tx").is_some()).await?;
        }
        delay => jobs::delayed(&queue, count, Duration::from_millis(delay)).await?,
    }
    println!("made");
    queue.close().await;
    Ok(())
}

/// Makes a request until it is answered, under one id.
async fn request(
    queue: &Queue,
    ledger: &Ledger,
    n: u64,
    kind: Kind,
    id: Option<queue_runtime::JobId>,
) -> Result<()> {
    let job = id.unwrap_or_else(|| jobs::new_id(queue));
    let repeats: &[bool] = if kind == Kind::Asked {
        &[false, true]
    } else {
        &[false]
    };
    for is_repeat in repeats.iter().copied() {
        let request = Request {
            n,
            kind,
            job,
            is_repeat,
        };
        loop {
            ledger.note(&Entry::Intent(n, kind, job))?;
            match request.make(queue).await {
                Ok(sent) => {
                    ledger.note(&Entry::Accepted(n, sent.id, sent.duplicate))?;
                    break;
                }
                Err(EnqueueError::Store(error)) if error.is_transient() => {
                    ledger.note(&Entry::Unknown(n))?;
                }
                Err(error) => {
                    ledger.note(&Entry::Refused(n))?;
                    bail!("request {n} was refused: {error}");
                }
            }
        }
    }
    Ok(())
}

/// What the processes before this one have written down for its line of requests.
struct Before(std::collections::BTreeMap<u64, (queue_runtime::JobId, bool)>);

impl Before {
    fn read(folder: &Path, line: &str) -> Result<Self> {
        let mut known = std::collections::BTreeMap::new();
        for (boot, entry) in ledger::read(folder)? {
            match entry {
                Entry::Intent(n, _, job) if boot.starts_with(line) => {
                    known.entry(n).or_insert((job, false));
                }
                Entry::Accepted(n, ..) if boot.starts_with(line) => {
                    known.entry(n).and_modify(|(_, answered)| *answered = true);
                }
                _ => {}
            }
        }
        Ok(Self(known))
    }

    fn is_answered(&self, n: u64) -> bool {
        self.0.get(&n).is_some_and(|(_, answered)| *answered)
    }

    fn id(&self, n: u64) -> Option<queue_runtime::JobId> {
        self.0.get(&n).map(|(job, _)| *job)
    }
}
