//! The project's chores, run as `cargo xtask <chore>`.
//!
//! Needs nothing beyond Rust's own distribution; `cargo nextest` is used where it is installed.

mod suite;
mod report;
mod stores;
mod serve;
mod budget;
mod versions;
mod examples;
mod torture;
mod foreground;
mod run;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const HELP: &str = "\
The project's chores.

Usage: cargo xtask <chore> [arguments]

Chores:
  test [-- <arguments for the runner>]
            Runs the whole test suite: unit tests and integration tests of every crate.
            Uses `cargo nextest` where it is installed, otherwise `cargo test`; `--runner
            nextest` or `--runner cargo` decides. Prints seconds per suite and the stores
            that ran, and ends with the runner's closing line. Fails when a test fails and
            when no test ran. Doc tests are a step of `.ci/run`.
            Starts a throw-away Postgres for the tests, unless QUEUE_TEST_POSTGRES_URL names
            one, and another behind a pgbouncer in transaction mode, unless
            QUEUE_TEST_PGBOUNCER_URL names one; PG_BIN names the folder of Postgres's
            programs. Without a server its tests are skipped; if CI is set, that is a failure.
  examples [name]
            Runs every example, or one, the way its header says: one run per line
            `// run: -- <arguments>`, or one run without arguments when there is none. A line
            `// run(postgres): -- <arguments>` runs with a throw-away server, whose URL stands
            for `{postgres}`; it is skipped like a test when there is no server.
            The last line of an example must be a JSON object.
  torture [--long] [--store sqlite|postgres] [--seed <n>]
            Kills processes: at each point of a job's life, three times each, and at random under
            a load of 20,000 jobs, ten times; then checks what must hold. With `--long` 30 times
            each, and under 300,000 jobs 100 times (SQLite: 200,000 and 50), in a release build.
            The kinds of jobs and the faults follow from the seed. Prints a table, the history of
            what breaks a promise, and one JSON object as its last line. Needs a Postgres as `test`
            does, unless the store is SQLite.
  postgres [--durable] [--bin <folder>]
            Starts a throw-away Postgres, prints its URL on one line, and stops it at Ctrl-C
            or when the input closes. Give the URL to a test runner of your own as
            QUEUE_TEST_POSTGRES_URL. With `--durable` commits wait for the disk; `--bin` or
            PG_BIN names the folder of the programs.
  postgres-versions [major…]
            Fetches other major versions of Postgres with npm, into a folder below `target`,
            and runs the Postgres tests on each; 13 to 18 unless some are named.
  servers   Says which servers the tests would use. Where it can without asking (root and
            apt-get), it installs Debian's package of one that is missing, here and in the
            chores that start a server. Fails if CI is set and one is missing.
  ci        Runs `.ci/run`, the whole gate.
  help      Prints this text.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match chore(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["help" | "-h" | "--help", ..] | [_, "-h" | "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test", rest @ ..] => {
            let (runner, rest) = match rest {
                ["--runner", name, rest @ ..] => (suite::Runner::named(name)?, rest),
                rest => (suite::Runner::installed(), rest),
            };
            match rest {
                [] => suite::test(runner, &[]),
                ["--", passed @ ..] => suite::test(runner, passed),
                [word, ..] => bail!("test: unknown argument `{word}`; see `cargo xtask help`"),
            }
        }
        ["torture", rest @ ..] => torture::run(rest),
        ["examples"] => examples::run(None),
        ["examples", name] => examples::run(Some(name)),
        ["postgres", rest @ ..] => foreground::postgres(rest),
        ["postgres-versions", majors @ ..] => versions::test(majors),
        ["servers"] => serve::tell(),
        ["ci"] => gate(),
        [word, ..] => bail!("unknown chore `{word}`; see `cargo xtask help`"),
    }
}

fn gate() -> Result<()> {
    let status = Command::new(workspace().join(".ci/run"))
        .status()
        .context("start .ci/run")?;
    match status.success() {
        true => Ok(()),
        false => bail!(".ci/run failed ({status})"),
    }
}

/// The workspace of this program, wherever it was called from.
///
/// Cargo says where it is at run time; what was true at build time may be another checkout that
/// shares the target folder.
fn workspace() -> PathBuf {
    let here =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).join("..")
}

/// Cargo, as the toolchain that runs this program names it.
fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    command
}
