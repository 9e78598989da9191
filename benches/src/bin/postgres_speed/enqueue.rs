//! Producers that insert, each waiting until its jobs are on the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use queue_runtime::job::NewJob;
use queue_runtime::store::Store;
use queue_runtime::store::postgres::PostgresStore;
use sqlx::postgres::PgConnection;
use tokio::task::JoinSet;

use crate::raw;
use crate::world::{BULK, RAW, World, plain};

/// How long each side is measured in a round.
const SPAN: Duration = Duration::from_secs(1);

/// Turns that the sides take within a round, because a disk can change its speed tenfold from one
/// second to the next.
const TURNS: u32 = 8;

/// One way to insert: producers at once, and jobs of each insert.
const WAYS: [(usize, usize); 3] = [(1, 1), (32, 1), (1, BULK)];

/// What the sides reached in one way, in jobs per second.
pub(crate) struct Enqueued {
    pub(crate) producers: usize,
    pub(crate) jobs: usize,
    /// As many connections as producers.
    pub(crate) raw: f64,
    /// The store as it is opened by default.
    pub(crate) store: f64,
    /// The store with as many connections as producers.
    pub(crate) wide: f64,
}

impl Enqueued {
    pub(crate) fn name(&self) -> String {
        match (self.producers, self.jobs) {
            (1, 1) => "1 producer".to_owned(),
            (1, jobs) => format!("1 producer, {jobs} jobs at once"),
            (producers, _) => format!("{producers} producers"),
        }
    }

    pub(crate) fn in_short(&self) -> String {
        format!(
            "{}: raw {:.0}, store {:.0}, store with a connection each {:.0}",
            self.name(),
            self.raw,
            self.store,
            self.wide
        )
    }
}

/// Measures every way once.
pub(crate) async fn measure(world: &World) -> Result<Vec<Enqueued>> {
    let mut outcomes = Vec::new();
    for (producers, jobs) in WAYS {
        let store = world.fresh(None).await?;
        let wide = world.store(Some(u32::try_from(producers)?.max(2))).await?;
        let mut bare = Vec::new();
        for _ in 0..producers {
            bare.push(Bare(world.connect(RAW).await?));
        }
        let mut ours = vec![Ours(Arc::clone(&store)); producers];
        let mut wider = vec![Ours(Arc::clone(&wide)); producers];
        let next = Arc::new(AtomicU64::new(0));
        let (mut raw_rate, mut store_rate, mut wide_rate) = (0.0, 0.0, 0.0);
        // The first turn opens connections and prepares, and does not count.
        for turn in 0..=TURNS {
            let counts = if turn == 0 {
                0.0
            } else {
                f64::from(TURNS).recip()
            };
            let (returned, rate) = run(bare, &next, jobs).await?;
            (bare, raw_rate) = (returned, raw_rate + rate * counts);
            let (returned, rate) = run(ours, &next, jobs).await?;
            (ours, store_rate) = (returned, store_rate + rate * counts);
            let (returned, rate) = run(wider, &next, jobs).await?;
            (wider, wide_rate) = (returned, wide_rate + rate * counts);
        }
        store.close().await;
        wide.close().await;
        outcomes.push(Enqueued {
            producers,
            jobs,
            raw: raw_rate,
            store: store_rate,
            wide: wide_rate,
        });
    }
    Ok(outcomes)
}

/// Something that inserts.
trait Producer: Send + 'static {
    fn insert(&mut self, jobs: &[NewJob]) -> impl Future<Output = Result<()>> + Send;
}

struct Bare(PgConnection);

impl Producer for Bare {
    async fn insert(&mut self, jobs: &[NewJob]) -> Result<()> {
        match jobs {
            [one] => raw::insert_one(&mut self.0, one).await,
            many => raw::insert(&mut self.0, many).await,
        }
    }
}

#[derive(Clone)]
struct Ours(Arc<PostgresStore>);

impl Producer for Ours {
    async fn insert(&mut self, jobs: &[NewJob]) -> Result<()> {
        self.0.insert(jobs).await?;
        Ok(())
    }
}

/// Lets all producers insert for a turn; returns them and how many jobs they stored in a second.
async fn run<P: Producer>(
    producers: Vec<P>,
    next: &Arc<AtomicU64>,
    jobs: usize,
) -> Result<(Vec<P>, f64)> {
    let begun = Instant::now();
    let end = begun + SPAN / TURNS;
    let mut tasks = JoinSet::new();
    for mut producer in producers {
        let next = Arc::clone(next);
        tasks.spawn(async move {
            let mut stored = 0;
            while Instant::now() < end {
                let first = next.fetch_add(jobs as u64, Ordering::Relaxed);
                let new: Vec<NewJob> = (first..first + jobs as u64)
                    .map(|number| plain(number.into()))
                    .collect();
                producer.insert(&new).await?;
                stored += new.len();
            }
            anyhow::Ok((producer, stored))
        });
    }
    let (mut returned, mut sum) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (producer, stored) = done??;
        returned.push(producer);
        sum += stored;
    }
    Ok((returned, sum as f64 / begun.elapsed().as_secs_f64()))
}
