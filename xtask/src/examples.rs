//! `cargo xtask examples`: runs every example the way its own header says.
//!
//! The list comes from Cargo, so a new example cannot be forgotten. A header line
//! `// run: -- <arguments>` asks for one run; without such a line there is one run without
//! arguments. A line `// run(postgres): -- <arguments>` asks for one with a server: `{postgres}` in
//! its arguments is the URL of one that all such runs share. An example that fails, takes too long,
//! or does not end with a JSON object fails.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::serve::Servers;
use crate::{cargo, run, stores};

/// Far above what an example takes; a hanging one must not hold up the gate for ever.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, PartialEq)]
struct Example {
    name: String,
    source: PathBuf,
}

/// One way to run an example, as its header says.
#[derive(Debug, Default, PartialEq)]
struct Run {
    /// The store whose server the run needs.
    store: Option<String>,
    arguments: Vec<String>,
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
    let mut runs = Vec::new();
    for Example { name, source } in &examples {
        let text = fs::read_to_string(source).with_context(|| format!("read {source:?}"))?;
        runs.extend(runs_of(&text).into_iter().map(|run| (name, run)));
    }
    for (name, run) in &runs {
        if let Some(store) = &run.store {
            let known = stores::has_server(store);
            ensure!(
                known,
                "{name}: `run({store}):` names no store with a server"
            );
        }
    }
    let needed = |store: &str| {
        runs.iter()
            .any(|(_, run)| run.store.as_deref() == Some(store))
    };
    let servers = Servers::start(needed)?;

    let mut skipped = 0;
    for (name, run) in &runs {
        match run.filled(|store| servers.url(store)) {
            Some(arguments) => one(&run.line(name), name, &arguments)?,
            None => {
                println!("\n== {}: skipped, no server", run.line(name));
                skipped += 1;
            }
        }
    }
    let passed = runs.len() - skipped;
    println!(
        "\n{passed} runs of {} examples passed, {skipped} skipped",
        examples.len()
    );
    Ok(())
}

impl Run {
    /// For people, without the URL of a server.
    fn line(&self, name: &str) -> String {
        let mut words = vec!["cargo run --example", name];
        words.extend(self.arguments.iter().map(String::as_str));
        words.join(" ")
    }

    /// The arguments with the URL of the server in its place; `None` if there is no server.
    fn filled(&self, url: impl Fn(&str) -> Option<String>) -> Option<Vec<String>> {
        let Some(store) = &self.store else {
            return Some(self.arguments.clone());
        };
        let (place, url) = (format!("{{{store}}}"), url(store)?);
        let arguments = self.arguments.iter();
        Some(arguments.map(|word| word.replace(&place, &url)).collect())
    }
}

fn one(line: &str, name: &str, arguments: &[String]) -> Result<()> {
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

/// One run per `run:` line in the comments that open the file.
fn runs_of(source: &str) -> Vec<Run> {
    let comments = source
        .lines()
        .map(str::trim)
        .take_while(|line| line.is_empty() || line.starts_with("//") || line.starts_with("#!["));
    let runs: Vec<Run> = comments.filter_map(run_line).collect();
    if runs.is_empty() {
        vec![Run::default()]
    } else {
        runs
    }
}

/// `// run(postgres): -- --database-url {postgres}`, the store optional.
fn run_line(comment: &str) -> Option<Run> {
    let rest = comment.trim_start_matches(['/', '!']).trim();
    let (head, arguments) = rest.strip_prefix("run")?.split_once(':')?;
    let store = match head {
        "" => None,
        head => Some(head.strip_prefix('(')?.strip_suffix(')')?.to_owned()),
    };
    let arguments = arguments.split_whitespace().map(str::to_owned).collect();
    Some(Run { store, arguments })
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

    fn run(store: Option<&str>, arguments: &[&str]) -> Run {
        Run {
            store: store.map(str::to_owned),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    #[test]
    fn each_run_line_of_the_header_is_one_run_and_no_line_is_one_without_arguments() {
        let check = |source: &str, expected: &[Run]| {
            assert_eq!(runs_of(source), expected, "{source}");
        };
        check("//! One idea.\n\nfn main() {}\n", &[run(None, &[])]);
        check(
            "//! Orders.\n//!\n//! run: -- orders.csv\n// run: -- orders.csv --kill\n\nuse x;\n",
            &[
                run(None, &["--", "orders.csv"]),
                run(None, &["--", "orders.csv", "--kill"]),
            ],
        );
        check(
            "//! Orders.\nuse x;\n// run: -- too-late\n",
            &[run(None, &[])],
        );
        check("//! It runs: twice.\n//! run it: now\n", &[run(None, &[])]);
    }

    #[test]
    fn a_run_line_may_name_the_store_whose_server_it_needs() {
        let source = "//! run: -- a.db\n// run(postgres): -- --url {postgres}\n";
        let expected = [
            run(None, &["--", "a.db"]),
            run(Some("postgres"), &["--", "--url", "{postgres}"]),
        ];
        assert_eq!(runs_of(source), expected);
        assert_eq!(runs_of("// run(postgres):\n"), [run(Some("postgres"), &[])]);
    }

    #[test]
    fn the_url_stands_where_the_store_is_named_and_without_a_server_there_is_no_run() {
        let needs = run(Some("postgres"), &["--", "--url={postgres}", "{redis}"]);
        let url = |store: &str| (store == "postgres").then(|| "postgres://here".to_owned());
        let filled = needs.filled(url);
        let expected = ["--", "--url=postgres://here", "{redis}"].map(str::to_owned);
        assert_eq!(filled, Some(expected.to_vec()));
        assert_eq!(needs.filled(|_| None), None);

        let alone = run(None, &["{postgres}"]);
        assert_eq!(alone.filled(|_| None), Some(vec!["{postgres}".to_owned()]));
    }

    #[test]
    fn a_shown_command_holds_no_url() {
        let needs = run(Some("postgres"), &["--", "--url={postgres}"]);
        let line = needs.line("webhooks");
        assert_eq!(line, "cargo run --example webhooks -- --url={postgres}");
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
