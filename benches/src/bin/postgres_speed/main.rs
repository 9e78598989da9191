//! How near the Postgres store comes to bare loops that keep no promises.
//!
//! The store is used through its public API: it settles a batch as done and claims the next one in
//! one exchange, and it inserts. Beside it the same server runs a hand-written loop with neither
//! leases nor history nor duplicates. Both take turns within each round, so that a slow minute
//! hits both, and only the ratio between them counts.
//!
//! `cargo run --release -p queue-benches --bin postgres_speed` starts a durable server of its own,
//! unless `--database-url <url>` names one, prints medians, and ends with one JSON object. It
//! fails if the store is slower than half of the bare loop while no snapshot is held. `drain`,
//! `snapshot` and `enqueue` choose what is measured; `--rounds <n>` says how often.

mod world;
mod meter;
mod raw;
mod store;
mod drain;
mod enqueue;
mod report;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::drain::Case;
use self::report::Report;
use self::world::World;

/// Rounds unless asked for otherwise: the fewest whose median survives two bad ones.
const ROUNDS: usize = 5;

/// Something to measure, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suite {
    /// Settling and claiming.
    Drain,
    /// The same beside an idle transaction that holds a snapshot.
    Snapshot,
    /// Inserting.
    Enqueue,
}

impl Suite {
    const ALL: [Self; 3] = [Self::Drain, Self::Snapshot, Self::Enqueue];

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|suite| format!("{suite:?}").to_lowercase() == name)
    }

    /// The drains that belong to it.
    fn cases(self) -> Vec<Case> {
        let is_held = match self {
            Self::Drain => false,
            Self::Snapshot => true,
            Self::Enqueue => return Vec::new(),
        };
        Case::all(is_held)
    }
}

struct Arguments {
    url: Option<String>,
    rounds: usize,
    suites: Vec<Suite>,
}

/// Ends with 0 if the target is met, 1 if it is missed, 2 if nothing could be measured.
#[tokio::main]
async fn main() -> ExitCode {
    match measure().await {
        Ok(missed) => {
            for target in &missed {
                eprintln!("missed: {target}");
            }
            ExitCode::from(u8::from(!missed.is_empty()))
        }
        Err(error) => {
            eprintln!("postgres_speed: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn measure() -> Result<Vec<String>> {
    let asked = arguments()?;
    let world = World::open(asked.url)?;
    println!("{}, {} rounds", world.describe().await?, asked.rounds);
    let mut report = Report::default();
    for suite in &asked.suites {
        for round in 1..=asked.rounds {
            for case in suite.cases() {
                let drained = drain::measure(&world, case).await?;
                eprintln!("round {round}, {}: {}", case.name(), drained.in_short());
                report.drained(case, drained);
            }
            if *suite == Suite::Enqueue {
                for outcome in enqueue::measure(&world).await? {
                    eprintln!("round {round}, {}", outcome.in_short());
                    report.enqueued(outcome);
                }
            }
        }
    }
    world.clear().await?;
    report.print(asked.rounds)?;
    Ok(report.missed())
}

fn arguments() -> Result<Arguments> {
    let (mut url, mut rounds, mut suites) = (None, ROUNDS, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--database-url" => url = Some(words.next().context("--database-url takes a URL")?),
            "--rounds" => {
                let number = words.next().context("--rounds takes a number")?;
                rounds = number.parse().context("--rounds takes a number")?;
            }
            name => match Suite::named(name) {
                Some(suite) => suites.push(suite),
                None => bail!("nothing is called {name:?}; there are {:?}", Suite::ALL),
            },
        }
    }
    if rounds == 0 {
        bail!("--rounds takes a number from 1");
    }
    if suites.is_empty() {
        suites = Suite::ALL.to_vec();
    }
    Ok(Arguments {
        url,
        rounds,
        suites,
    })
}
