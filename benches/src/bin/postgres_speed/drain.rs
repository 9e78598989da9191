//! Loops that settle a batch and claim the next one, until the table is empty.
//!
//! The bare loop and the store take turns by fifths of the jobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use queue_runtime::store::Store;
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use crate::meter;
use crate::raw::RawLoop;
use crate::store::{StoreLoop, look_for_expired};
use crate::world::{RAW, STORE, World};

/// Turns of each side.
pub(crate) const SLICES: usize = 5;

/// After so long a turn is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// One way to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// Jobs per exchange.
    pub(crate) batch: usize,
    /// Concurrent loops.
    pub(crate) loops: usize,
    /// Whether an idle transaction holds a snapshot.
    pub(crate) is_held: bool,
}

impl Case {
    /// The ways that are measured.
    pub(crate) fn all(is_held: bool) -> Vec<Self> {
        let ways = [(50, 1), (50, 2), (500, 1), (500, 2)];
        let case = |(batch, loops)| Self {
            batch,
            loops,
            is_held,
        };
        ways.into_iter().map(case).collect()
    }

    pub(crate) fn name(self) -> String {
        let loops = if self.loops == 1 { "loop" } else { "loops" };
        let held = if self.is_held { ", snapshot held" } else { "" };
        format!("batch {}, {} {loops}{held}", self.batch, self.loops)
    }

    /// Enough for some hundred exchanges.
    fn jobs(self) -> usize {
        match self.batch {
            50 => 20_000,
            _ => 60_000,
        }
    }
}

/// What one exchange came to.
pub(crate) struct Turned {
    pub(crate) settled: usize,
    pub(crate) claimed: usize,
}

/// Settles what it holds and claims anew.
pub(crate) trait Drainer: Send + 'static {
    /// Does it once.
    fn turn(&mut self) -> impl Future<Output = Result<Turned>> + Send;
}

/// What one side came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) per_second: f64,
    /// The rate of each turn.
    pub(crate) slices: Vec<f64>,
    /// Microseconds of processor time per job: the server's, and this program's.
    pub(crate) server_us: f64,
    pub(crate) own_us: f64,
    /// Claims that came back with fewer jobs than asked before the end.
    pub(crate) short: usize,
}

/// What both sides came to in one round.
#[derive(Clone, Debug)]
pub(crate) struct Drained {
    pub(crate) raw: Side,
    pub(crate) store: Side,
}

impl Drained {
    pub(crate) fn ratio(&self) -> f64 {
        self.store.per_second / self.raw.per_second
    }

    pub(crate) fn in_short(&self) -> String {
        format!(
            "raw {:.0}, store {:.0}, ratio {:.2}",
            self.raw.per_second,
            self.store.per_second,
            self.ratio()
        )
    }
}

/// Drains both sides once, in turns.
pub(crate) async fn measure(world: &World, case: Case) -> Result<Drained> {
    let store = world.fresh(None).await?;
    world.fill(&store, case.jobs()).await?;
    let held = match case.is_held {
        true => Some(world.hold_snapshot().await?),
        false => None,
    };
    let mut watch = world.connect("postgres_speed watch").await?;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..case.loops {
        bare.push(RawLoop {
            conn: world.connect(RAW).await?,
            batch: case.batch,
            held: Vec::new(),
        });
        ours.push(StoreLoop::new(&store, case.batch));
    }
    let mut raw_sum = Sum::begin(&mut watch, RAW).await?;
    let mut store_sum = Sum::begin(&mut watch, STORE).await?;
    for slice in 1..=SLICES {
        let goal = case.jobs() * slice / SLICES;
        bare = raw_sum.turn(case, goal, bare).await?;
        ours = tokio::select! {
            ours = store_sum.turn(case, goal, ours) => ours?,
            failed = look_for_expired(&store) => match failed {
                Ok(never) => match never {},
                Err(error) => return Err(error),
            },
        };
    }
    let drained = Drained {
        raw: raw_sum.end(&mut watch, RAW).await?,
        store: store_sum.end(&mut watch, STORE).await?,
    };
    let counts = queue_runtime::store::Admin::counts(&*store).await?;
    ensure!(
        counts.done == case.jobs() as u64 && counts.done == counts.total(),
        "the drain left {counts:?}"
    );
    if let Some(conn) = held {
        conn.close().await?;
    }
    store.close().await;
    Ok(drained)
}

/// The turns of one side so far.
struct Sum {
    settled: usize,
    time: Duration,
    server: f64,
    side: Side,
}

impl Sum {
    async fn begin(watch: &mut PgConnection, application: &str) -> Result<Self> {
        Ok(Self {
            settled: 0,
            time: Duration::ZERO,
            server: meter::server(watch, application).await?,
            side: Side::default(),
        })
    }

    /// Lets the loops run until so many jobs are settled in all.
    async fn turn<D: Drainer>(
        &mut self,
        case: Case,
        goal: usize,
        drainers: Vec<D>,
    ) -> Result<Vec<D>> {
        let (own, begun) = (meter::own(), Instant::now());
        let shared = Arc::new(Shared {
            settled: AtomicUsize::new(self.settled),
            short: AtomicUsize::new(0),
            goal,
            batch: case.batch,
        });
        let tasks: Vec<_> = drainers
            .into_iter()
            .map(|drainer| tokio::spawn(run(drainer, Arc::clone(&shared))))
            .collect();
        let mut drainers = Vec::with_capacity(tasks.len());
        for task in tasks {
            drainers.push(task.await??);
        }
        let (time, settled) = (begun.elapsed(), shared.settled.load(Ordering::Relaxed));
        let slice = (settled - self.settled) as f64 / time.as_secs_f64();
        self.side.slices.push(slice);
        self.side.own_us += meter::own() - own;
        if goal < case.jobs() {
            self.side.short += shared.short.load(Ordering::Relaxed);
        }
        self.settled = settled;
        self.time += time;
        Ok(drainers)
    }

    async fn end(mut self, watch: &mut PgConnection, application: &str) -> Result<Side> {
        let server = meter::server(watch, application).await? - self.server;
        self.side.per_second = self.settled as f64 / self.time.as_secs_f64();
        self.side.server_us = server * 1e6 / self.settled as f64;
        self.side.own_us *= 1e6 / self.settled as f64;
        Ok(self.side)
    }
}

/// What the loops of one turn have in common.
struct Shared {
    settled: AtomicUsize,
    short: AtomicUsize,
    goal: usize,
    batch: usize,
}

async fn run<D: Drainer>(mut drainer: D, shared: Arc<Shared>) -> Result<D> {
    let begun = Instant::now();
    while shared.settled.load(Ordering::Relaxed) < shared.goal {
        ensure!(
            begun.elapsed() < PATIENCE,
            "a turn does not end: {} of {} jobs are settled",
            shared.settled.load(Ordering::Relaxed),
            shared.goal
        );
        let turned = drainer.turn().await?;
        shared.settled.fetch_add(turned.settled, Ordering::Relaxed);
        if turned.claimed < shared.batch {
            shared.short.fetch_add(1, Ordering::Relaxed);
        }
        if turned.claimed == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(drainer)
}
