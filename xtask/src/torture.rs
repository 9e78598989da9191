//! `cargo xtask torture`: the crash matrix, and loads with random kills, short or long.
//!
//! Builds the rig's program with the points at which its processes can die, starts a server where a
//! store needs one, and runs the program on each store. Its last line is one JSON object.

use anyhow::{Context, Result, bail, ensure};
use xtask::programs::Build;

use crate::serve::Servers;

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    stores: Vec<&'static str>,
    is_long: bool,
    seed: u64,
}

/// The stores that several processes can open.
const STORES: [&str; 2] = ["sqlite", "postgres"];

/// Runs it.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let plan = plan(words)?;
    let programs = Build {
        names: &["torture"],
        features: &["queue-torture/failpoints"],
        release: plan.is_long,
        ..Build::default()
    };
    let programs = programs.run()?;
    let servers = Servers::start(|store| plan.stores.contains(&store))?;
    if let Some(skipped) = servers.skipped().first() {
        bail!("{}: {}", skipped.store, skipped.reason);
    }
    let status = std::process::Command::new(&programs["torture"])
        .args(arguments(&plan))
        .envs(servers.variables())
        .status()
        .context("start the rig's program")?;
    ensure!(status.success(), "torture failed ({status})");
    Ok(())
}

fn plan(words: &[&str]) -> Result<Plan> {
    let mut plan = Plan {
        stores: STORES.to_vec(),
        is_long: false,
        seed: 1,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word}: no value"));
        match *word {
            "--long" => plan.is_long = true,
            "--store" => {
                let name = value()?;
                let store = STORES.into_iter().find(|store| store == name);
                let expected =
                    || format!("--store: expected `sqlite` or `postgres`, found `{name}`");
                plan.stores = vec![store.with_context(expected)?];
            }
            "--seed" => {
                let text = value()?;
                let expected = || format!("--seed: expected a number, found `{text}`");
                plan.seed = text.parse().with_context(expected)?;
            }
            other => bail!("torture: unknown argument `{other}`; see `cargo xtask help`"),
        }
    }
    Ok(plan)
}

/// What the program is told.
fn arguments(plan: &Plan) -> Vec<String> {
    let mut arguments = vec![
        "all".to_owned(),
        format!("stores={}", plan.stores.join(",")),
        format!("seed={}", plan.seed),
    ];
    if plan.is_long {
        arguments.push("long=yes".to_owned());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_in_any_order_and_without_any_both_stores_are_tried_shortly() {
        let check = |words: &[&str], expected: &[&str]| {
            let told = arguments(&plan(words).expect("they are right"));
            assert_eq!(told, expected, "{words:?}");
        };
        check(&[], &["all", "stores=sqlite,postgres", "seed=1"]);
        check(
            &["--seed", "7", "--store", "postgres", "--long"],
            &["all", "stores=postgres", "seed=7", "long=yes"],
        );
    }

    #[test]
    fn a_wrong_argument_is_refused_with_what_is_expected() {
        let check = |words: &[&str], expected: &str| {
            let refused = plan(words).expect_err("it is wrong").to_string();
            assert_eq!(refused, expected, "{words:?}");
        };
        check(
            &["--store", "memory"],
            "--store: expected `sqlite` or `postgres`, found `memory`",
        );
        check(&["--seed", "x"], "--seed: expected a number, found `x`");
        check(&["--seed"], "--seed: no value");
        check(
            &["--short"],
            "torture: unknown argument `--short`; see `cargo xtask help`",
        );
    }
}
