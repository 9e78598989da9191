//! What `#[job]` costs the compiler: processor time per job, over the same functions without it.
//!
//! `cargo run --release -p queue-benches --bin compile_cost` writes crates with 1, 100 and 500 jobs of three
//! payload and two injected arguments, compiles each alone (its dependencies are built beforehand), prints a
//! table, and ends with one JSON object. `--rounds <n>` asks for more or fewer than two, of which the best
//! counts; `--jobs 1,100` for other crates. It needs no network, and Linux for the processor time.

mod subject;
mod meter;
mod report;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::report::{Cost, Report};
use self::subject::{Subject, Variant};

/// Rounds unless asked for otherwise.
const ROUNDS: usize = 2;

/// Jobs per crate unless asked for otherwise.
const JOBS: [usize; 3] = [1, 100, 500];

/// Ends with 0 if the budgets are kept, 1 if one is exceeded, 2 if nothing could be measured.
fn main() -> ExitCode {
    match measure() {
        Ok(missed) => {
            for budget in &missed {
                eprintln!("missed: {budget}");
            }
            ExitCode::from(u8::from(!missed.is_empty()))
        }
        Err(error) => {
            eprintln!("compile_cost: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<Vec<String>> {
    let (rounds, sizes) = asked_for(std::env::args().skip(1))?;
    let folder = tempfile::tempdir().context("a folder for the crates")?;
    let mut report = Report::default();
    for jobs in sizes {
        for variant in [Variant::Plain, Variant::Jobs] {
            let subject = Subject::write(folder.path(), jobs, variant)?;
            // Builds what the crate needs, so that the crate alone is left.
            cost(&subject)?;
            let mut best = cost(&subject)?;
            for _ in 1..rounds {
                best = best.least(cost(&subject)?);
            }
            eprintln!("{jobs} {}: {}", variant.name(), best.in_short());
            report.add(jobs, variant, best);
        }
    }
    report.print()
}

/// Compiles the crate once in every way.
fn cost(subject: &Subject) -> Result<Cost> {
    let whole = |arguments: &[&str]| {
        subject.touch()?;
        meter::cpu_seconds(subject.cargo(arguments, false))
    };
    let (check, dev) = (whole(&["check"])?, whole(&["build"])?);
    let release = whole(&["build", "--release"])?;
    subject.touch()?;
    meter::cpu_seconds(subject.cargo(&["check"], true))?;
    subject.edit_a_body()?;
    let recheck = meter::cpu_seconds(subject.cargo(&["check"], true))?;
    Ok(Cost {
        check,
        dev,
        release,
        recheck,
    })
}

fn asked_for(mut arguments: impl Iterator<Item = String>) -> Result<(usize, Vec<usize>)> {
    let (mut rounds, mut jobs) = (ROUNDS, JOBS.to_vec());
    while let Some(flag) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let numbers: Result<Vec<usize>, _> = value.split(',').map(str::parse).collect();
        let numbers = numbers.unwrap_or_default();
        match (flag.as_str(), numbers.as_slice()) {
            ("--rounds", [number]) if *number > 0 => rounds = *number,
            ("--jobs", [first, ..]) if *first > 0 => jobs = numbers,
            _ => bail!(
                "cannot make sense of `{flag} {value}`; there are `--rounds 2` and `--jobs 1,100`"
            ),
        }
    }
    Ok((rounds, jobs))
}
