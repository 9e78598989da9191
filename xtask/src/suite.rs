//! `cargo xtask test`: runs every suite with the best runner at hand and says what ran.
//!
//! What goes in: the runner's own arguments. The servers of the stores are started before the
//! suites and stopped after them, also when a test fails. What comes out: the runner's output as it comes, a
//! table of seconds per suite, the stores that ran, and the runner's closing line. The counts in
//! the last line are the runner's. A run without a test is a failure.

use std::process::Stdio;

use anyhow::{Result, bail};

use crate::report::{self, Report};
use crate::run::{self, Finished};
use crate::serve::Servers;
use crate::{budget, cargo, stores};

/// Opens the part of the output that `.ci/run` repeats at its end.
const SUMMARY: &str = "== summary of the suites";

/// The program that runs the tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Runner {
    Nextest,
    Cargo,
}

impl Runner {
    /// Nextest where it is installed.
    pub(crate) fn installed() -> Self {
        let mut asked = cargo();
        asked
            .args(["nextest", "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match asked.status() {
            Ok(status) if status.success() => Self::Nextest,
            _ => Self::Cargo,
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self> {
        match name {
            "nextest" => Ok(Self::Nextest),
            "cargo" => Ok(Self::Cargo),
            _ => bail!("--runner: expected `nextest` or `cargo`, found `{name}`"),
        }
    }

    fn run(self, arguments: &[&str], servers: &Servers) -> Result<Finished> {
        let mut command = cargo();
        match self {
            Self::Nextest => command.args(["nextest", "run"]),
            Self::Cargo => command.args(["test", "--lib", "--bins", "--tests"]),
        };
        command
            .args(["--workspace", "--no-fail-fast"])
            .args(arguments);
        // Colours, or a quieter setting of the caller, would hide lines that are read afterwards.
        command
            .env("CARGO_TERM_COLOR", "never")
            .env("NEXTEST_STATUS_LEVEL", "pass")
            .envs(servers.variables());
        println!("== {} {}", self.name(), arguments.join(" "));
        run::both_streams(command)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nextest => "cargo nextest run",
            Self::Cargo => "cargo test",
        }
    }

    fn read(self, output: &str) -> Report {
        match self {
            Self::Nextest => report::of_nextest(output),
            Self::Cargo => report::of_cargo_test(output),
        }
    }
}

/// Runs all suites; an error says why the run does not count as passed.
pub(crate) fn test(runner: Runner, arguments: &[&str]) -> Result<()> {
    let servers = Servers::start(|_| true)?;
    let skipped = servers.skipped();
    let finished = runner.run(arguments, &servers);
    drop(servers);
    let Finished {
        status,
        output,
        seconds,
    } = finished?;
    let report = runner.read(&output);
    let verdict = verdict(&report, status.success());

    println!("\n{SUMMARY} ({}, {seconds:.0} s)", runner.name());
    print!("{}", budget::table(&report.suites));
    println!("{}", stores::that_ran(&report.tests, &skipped));
    if let Some(closing) = &report.closing {
        println!("{closing}");
        println!("{} passed, {} failed", report.passed, report.failed);
    }
    match verdict {
        // Somebody who names what to run may well leave a store out.
        Ok(()) if arguments.is_empty() => match stores::untested(&report.tests, &skipped) {
            Some(store) => bail!("no test ran on the store {store}"),
            None => Ok(()),
        },
        Ok(()) => Ok(()),
        Err(reason) => bail!("{reason}"),
    }
}

/// Passed only if the runner says so, its own numbers agree, and there was something to run.
fn verdict(report: &Report, runner_passed: bool) -> Result<(), String> {
    if report.closing.is_none() {
        return Err("the runner did not reach its closing line".to_owned());
    }
    if report.passed + report.failed == 0 {
        return Err("no test ran".to_owned());
    }
    match (report.failed, runner_passed) {
        (0, true) => Ok(()),
        (0, false) => Err("the runner failed outside of a test".to_owned()),
        (failed, _) => Err(format!("{failed} failed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_passes_only_with_a_closing_line_a_test_and_no_failure() {
        let check = |closing: bool, passed, failed, runner_passed, expected: Result<(), &str>| {
            let closing = closing.then(|| "test result: …".to_owned());
            let report = Report {
                passed,
                failed,
                closing,
                ..Report::default()
            };
            let found = verdict(&report, runner_passed);
            assert_eq!(found, expected.map_err(str::to_owned), "{report:?}");
        };
        check(true, 7, 0, true, Ok(()));
        check(true, 7, 2, false, Err("2 failed"));
        check(true, 7, 2, true, Err("2 failed"));
        check(
            true,
            7,
            0,
            false,
            Err("the runner failed outside of a test"),
        );
        check(true, 0, 0, true, Err("no test ran"));
        check(
            false,
            7,
            0,
            true,
            Err("the runner did not reach its closing line"),
        );
    }

    #[test]
    fn an_unknown_runner_is_refused_with_the_accepted_names() {
        let refused = Runner::named("make").map_err(|error| error.to_string());
        assert_eq!(
            refused,
            Err("--runner: expected `nextest` or `cargo`, found `make`".into())
        );
    }
}
