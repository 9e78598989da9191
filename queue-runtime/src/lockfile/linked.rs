//! Whether a program has the jobs that its `jobs.lock` names.
//!
//! A library that nothing refers to is left out by the linker, and its jobs with it: the program itself
//! cannot tell that from a program without them.

use std::collections::HashSet;

use super::{LockfileError, PACKAGE, parse};
use crate::job::JobType;
use crate::pipeline::declare::Registry;

/// Names the jobs of the file that the program lacks, each with its package and what to do; empty if
/// it has all.
///
/// # Errors
/// If the text is damaged or of a newer form; the error names the line.
pub fn missing(registry: &Registry, text: &str) -> Result<Vec<String>, LockfileError> {
    let linked: HashSet<&str> = registry.defs().map(|def| def.source.package).collect();
    let contracts = parse(text)?.into_iter();
    let is_missing =
        |name: &str| JobType::new(name).map_or(true, |job_type| registry.find(&job_type).is_none());
    let missing = contracts.filter(|job| is_missing(&job.name)).map(|job| {
        let name = &job.name;
        match job.setting(PACKAGE) {
            Some(package) if !linked.contains(package) => {
                let library = package.replace('-', "_");
                format!(
                    "job `{name}` of package `{package}` is not linked. Add `use {library} as _;` to the \
                     program's main file"
                )
            }
            _ => format!(
                "job `{name}` stands in jobs.lock, and this program does not have it. If it was removed, \
                 bring the file up to date with QUEUE_LOCKFILE=update cargo test"
            ),
        }
    });
    Ok(missing.collect())
}
