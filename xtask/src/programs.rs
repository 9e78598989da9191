//! Builds programs of the workspace for tests and chores that run them as processes.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// What is built, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Build<'a> {
    /// The names of the programs.
    pub names: &'a [&'a str],
    /// Features beyond the default ones, as `<package>/<feature>`.
    pub features: &'a [&'a str],
    /// Where to build; by default where Cargo does.
    pub target: Option<&'a Path>,
    /// Whether for speed.
    pub release: bool,
}

impl Build<'_> {
    /// Builds them, and returns where each is.
    ///
    /// They are chosen from the whole workspace, as the suites are: so the crates that they are made
    /// of have the features that those have, and are there already, but for what a feature changes.
    ///
    /// # Errors
    /// If Cargo does not start, or one does not build.
    pub fn run(self) -> Result<BTreeMap<String, PathBuf>> {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(here())
            .args(["build", "--locked", "--workspace", "--message-format=json"])
            .args(self.names.iter().flat_map(|name| ["--bin", name]))
            .args(self.features.iter().flat_map(|name| ["--features", name]))
            .args(self.release.then_some("--release"))
            .stderr(Stdio::inherit());
        if let Some(target) = self.target {
            command.arg("--target-dir").arg(target);
        }
        let output = command.output().context("start cargo")?;
        ensure!(output.status.success(), "{:?} do not build", self.names);
        let programs = programs(&String::from_utf8(output.stdout)?);
        for name in self.names {
            ensure!(programs.contains_key(*name), "cargo built no {name}");
        }
        Ok(programs)
    }
}

/// Cargo's word at run time for where the workspace is; the one at build time may be of another
/// checkout.
fn here() -> OsString {
    let here = env::var_os("CARGO_MANIFEST_DIR");
    here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
}

/// Reads Cargo's messages: the names of programs, and where they are.
fn programs(messages: &str) -> BTreeMap<String, PathBuf> {
    let program = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let name = message["target"]["name"].as_str()?.to_owned();
        let path = message["executable"].as_str()?;
        Some((name, PathBuf::from(path)))
    };
    messages.lines().filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_among_the_messages_of_cargo() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"torture"},"executable":"/target/debug/torture"}
{"reason":"build-finished","success":true}"#;
        let found = programs(messages);
        let expected = BTreeMap::from([("torture".to_owned(), "/target/debug/torture".into())]);
        assert_eq!(found, expected);
    }
}
