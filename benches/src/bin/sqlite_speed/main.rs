//! How fast the embedded store takes jobs and hands them out, with every commit on the disk.
//!
//! `cargo run --release -p queue-benches --bin sqlite_speed` measures in rounds, prints medians,
//! and ends with one JSON object. It fails if the store does not share commits as promised: 32
//! enqueuers must reach eight times the rate of one, and a drain must not commit more than once
//! per fifty jobs. `--rounds <n>` asks for more or fewer than five.

mod store;
mod enqueue;
mod drain;
mod raw;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use queue_benches::disk::Disk;

use self::enqueue::Enqueuers;
use self::report::{Report, Round};

/// Rounds unless asked for otherwise: the fewest whose median survives two bad ones.
const ROUNDS: usize = 5;

/// How long each kind of enqueueing is measured in a round.
const SPAN: Duration = Duration::from_secs(1);

/// Turns that one enqueuer and many take within a round, because a disk can change its speed
/// tenfold from one second to the next.
const TURNS: u32 = 8;

/// How many enqueue at once in the measurement of shared commits.
const ENQUEUERS: usize = 32;

/// Jobs of one drain.
const JOBS: usize = 20_000;

/// Attempts that the draining worker runs at once.
const CONCURRENCY: usize = 50;

/// Ends with 0 if all targets are met, 1 if one is missed, 2 if nothing could be measured.
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
            eprintln!("sqlite_speed: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Measures in rounds, prints the report, and returns the targets that were missed.
async fn measure() -> Result<Vec<String>> {
    let rounds = rounds()?;
    let disk = Disk::find()?;
    println!("on {}, {rounds} rounds, synchronous=FULL", disk.describe());
    let mut report = Report::default();
    for number in 1..=rounds {
        eprint!("round {number} of {rounds}: ");
        let round = round(&disk).await?;
        eprintln!("{}", round.in_short());
        report.add(round);
    }
    report.print()?;
    Ok(report.missed())
}

/// Measures everything once, each on a file of its own.
async fn round(disk: &Disk) -> Result<Round> {
    let sync = disk.sync_span()?;
    let (alone, together) = (disk.fresh()?, disk.fresh()?);
    let mut single = Enqueuers::open(alone.path(), 1).await?;
    let mut shared = Enqueuers::open(together.path(), ENQUEUERS).await?;
    for _ in 0..TURNS {
        single.run(SPAN / TURNS).await?;
        shared.run(SPAN / TURNS).await?;
    }
    Ok(Round {
        sync,
        single: single.finish().await,
        shared: shared.finish().await,
        raw_single: raw::insert(disk.fresh()?.path(), 1, SPAN).await?,
        raw_batch: raw::insert(disk.fresh()?.path(), raw::BATCH, SPAN).await?,
        drain: drain::measure(disk.fresh()?.path(), JOBS, CONCURRENCY).await?,
        raw_drain: raw::drain(disk.fresh()?.path(), JOBS, CONCURRENCY).await?,
    })
}

fn rounds() -> Result<usize> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => Ok(ROUNDS),
        [flag, number] if flag == "--rounds" => match number.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => bail!("--rounds takes a number from 1, not {number:?}"),
        },
        other => bail!("cannot make sense of {other:?}; there is only `--rounds <n>`"),
    }
}
