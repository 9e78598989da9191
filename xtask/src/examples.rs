//! `cargo xtask examples`: runs every example the way its own header says.
//!
//! The list comes from Cargo, so a new example cannot be forgotten. A header line
//! `// run: -- <arguments>` asks for one run; without such a line there is one run without
//! arguments. An example that fails, takes too long, or does not end with a JSON object fails.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{cargo, run};

/// Far above what an example takes; a hanging one must not hold up the gate for ever.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, PartialEq)]
struct Example {
    name: String,
    source: PathBuf,
}

/// Runs all examples, or the one called `only`.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let mut examples = listed(&metadata()?)?;
    if let Some(name) = only {
        examples.retain(|example| example.name == name);
        ensure!(!examples.is_empty(), "no example is called `{name}`");
    }
    ensure!(!examples.is_empty(), "the workspace has no example");
    let built = cargo()
        .args(["build", "--workspace", "--examples"])
        .status()?;
    ensure!(built.success(), "the examples do not build");
    let mut runs = 0;
    for Example { name, source } in &examples {
        let text = fs::read_to_string(source).with_context(|| format!("read {source:?}"))?;
        for arguments in runs_of(&text) {
            one(name, &arguments)?;
            runs += 1;
        }
    }
    println!("\n{runs} runs of {} examples passed", examples.len());
    Ok(())
}

fn one(name: &str, arguments: &[String]) -> Result<()> {
    let line = [&["cargo run --example", name], &*words(arguments)]
        .concat()
        .join(" ");
    println!("\n== {line}");
    let mut command = cargo();
    command
        .args(["run", "--quiet", "--example", name])
        .args(arguments);
    let done = run::stdout_within(command, LIMIT)?;
    ensure!(done.status.success(), "`{line}` failed ({})", done.status);
    ensure!(
        ends_with_object(&done.output),
        "the last line of `{line}` is not a JSON object"
    );
    println!("== {:.1} s", done.seconds);
    Ok(())
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn metadata() -> Result<String> {
    let asked = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()?;
    ensure!(
        asked.status.success(),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
    Ok(String::from_utf8(asked.stdout)?)
}

/// The example targets in Cargo's description of the workspace, by name.
fn listed(metadata: &str) -> Result<Vec<Example>> {
    let metadata: Value = serde_json::from_str(metadata).context("read Cargo's metadata")?;
    let Some(packages) = metadata["packages"].as_array() else {
        bail!("Cargo's metadata lists no packages");
    };
    let targets = packages
        .iter()
        .filter_map(|package| package["targets"].as_array())
        .flatten();
    let mut examples: Vec<Example> = targets
        .filter(|target| target["kind"][0] == "example")
        .filter_map(|target| {
            let name = target["name"].as_str()?.to_owned();
            Some(Example {
                name,
                source: target["src_path"].as_str()?.into(),
            })
        })
        .collect();
    examples.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(examples)
}

/// One list of arguments per `run:` line in the comments that open the file.
fn runs_of(source: &str) -> Vec<Vec<String>> {
    let comments = source
        .lines()
        .map(str::trim)
        .take_while(|line| line.is_empty() || line.starts_with("//") || line.starts_with("#!["));
    let runs: Vec<Vec<String>> = comments
        .filter_map(|line| {
            line.trim_start_matches(['/', '!'])
                .trim()
                .strip_prefix("run:")
        })
        .map(|arguments| arguments.split_whitespace().map(str::to_owned).collect())
        .collect();
    if runs.is_empty() {
        vec![Vec::new()]
    } else {
        runs
    }
}

fn ends_with_object(output: &str) -> bool {
    let last = output
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    serde_json::from_str::<Value>(last).is_ok_and(|value| value.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_line_of_the_header_is_one_run_and_no_line_is_one_without_arguments() {
        let check = |source: &str, expected: &[&[&str]]| {
            assert_eq!(runs_of(source), expected, "{source}");
        };
        check("//! One idea.\n\nfn main() {}\n", &[&[]]);
        check(
            "//! Orders.\n//!\n//! run: -- orders.csv\n// run: -- orders.csv --kill\n\nuse x;\n",
            &[&["--", "orders.csv"], &["--", "orders.csv", "--kill"]],
        );
        check("//! Orders.\nuse x;\n// run: -- too-late\n", &[&[]]);
    }

    #[test]
    fn examples_are_found_in_cargos_own_list() -> Result<()> {
        let metadata = r#"{"packages":[
            {"targets":[{"kind":["lib"],"name":"queue_examples","src_path":"/x/lib.rs"},
                        {"kind":["example"],"name":"webhooks","src_path":"/x/webhooks.rs"}]},
            {"targets":[{"kind":["example"],"name":"quickstart","src_path":"/x/quickstart.rs"}]}]}"#;
        let names: Vec<String> = listed(metadata)?
            .into_iter()
            .map(|found| found.name)
            .collect();
        assert_eq!(names, ["quickstart", "webhooks"]);
        assert!(listed("{}").is_err());
        Ok(())
    }

    #[test]
    fn only_a_json_object_on_the_last_line_is_an_ending() {
        let check = |output: &str, expected: bool| {
            assert_eq!(ends_with_object(output), expected, "{output:?}");
        };
        check("a table\n{\"orders\":1000}\n\n", true);
        check("{\"orders\":1000}\na table\n", false);
        check("[1]\n", false);
        check("", false);
    }
}
