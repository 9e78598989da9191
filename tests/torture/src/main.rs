//! The rig's program: the supervisor, and in another part each of the processes that it starts.
//!
//! - `torture matrix store=sqlite|postgres [trials=3] [cell=C05]`: the crash matrix, for which it is
//!   built with the feature `failpoints`.
//! - `torture load store=sqlite|postgres [jobs=20000] [kills=10] [crashes_max=100] [seed=1]`: a load
//!   with random kills.
//! - `torture all stores=<name>,<name> [long=yes] [seed=1]`: both, on each store.
//!
//! The last line is one JSON object; the program fails if an invariant does not hold.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use queue_torture::load::{self, Load};
use queue_torture::matrix;
use queue_torture::part::{self, Arguments};
use queue_torture::plan;
use queue_torture::summary::Summary;

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("torture: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let part = words.next().unwrap_or_default();
    let arguments = Arguments::new(words);
    let summary = match part.as_str() {
        "work" => {
            part::work(&arguments).await?;
            return Ok(ExitCode::SUCCESS);
        }
        "produce" => {
            part::produce(&arguments).await?;
            return Ok(ExitCode::SUCCESS);
        }
        "bulk" => {
            part::bulk(&arguments).await?;
            return Ok(ExitCode::SUCCESS);
        }
        "points" => {
            #[cfg(feature = "failpoints")]
            for name in queue_runtime::failpoint::NAMES {
                println!("{name}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        "matrix" => {
            let store = arguments.get("store").context("no store=…")?.parse()?;
            let trials = arguments.number("trials", 3)?;
            matrix::run(store, trials, arguments.get("cell")).await?
        }
        "all" => plan::all(&arguments).await?,
        "load" => load(&arguments).await?,
        other => bail!("expected `all`, `matrix` or `load`, found {other:?}"),
    };
    println!("{}", summary.line());
    Ok(match summary.violations {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

async fn load(arguments: &Arguments) -> Result<Summary> {
    let store = arguments.get("store").context("no store=…")?.parse()?;
    let load = Load {
        store,
        jobs: arguments.number("jobs", 20_000)?,
        kills: arguments.number("kills", 10)?,
        crashes_max: arguments.number("crashes_max", load::CRASHES_MAX)?,
        seed: arguments.number("seed", 1)?,
    };
    println!("{load:?}");
    load::run(load).await
}
