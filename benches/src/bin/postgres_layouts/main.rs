//! Which tables should hold the jobs of a queue on Postgres, and which form should a claim have.
//!
//! Loops of raw statements claim and settle until a table is empty; nothing of the library runs.
//! Variants take turns in rounds, so that a slow minute hits all of them, and only ratios within
//! a run count. `--database-url <url>` names a server whose settings are the defaults; the schema
//! `postgres_layouts` is made there and dropped at the end. The other arguments say which suites
//! run: `layouts`, `forms`, `payloads`, `commits`, `plans`; `--rounds <n>` how often.

mod statements;
mod moment;
mod lanes;
mod world;
mod server;
mod run;
mod suites;
mod plans;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::suites::Suite;

/// Rounds unless asked for otherwise.
const ROUNDS: usize = 3;

struct Arguments {
    url: String,
    rounds: usize,
    suites: Vec<Suite>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postgres_layouts: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn measure() -> Result<()> {
    let asked = arguments()?;
    for suite in &asked.suites {
        suite.run(&asked.url, asked.rounds).await?;
    }
    world::drop_all(&asked.url).await
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
                None => bail!("no suite is called {name:?}; there are {:?}", Suite::ALL),
            },
        }
    }
    if suites.is_empty() {
        suites = Suite::ALL.to_vec();
    }
    let url = url.context("say which server: --database-url postgres://…")?;
    Ok(Arguments {
        url,
        rounds,
        suites,
    })
}
