//! A test that compares a program's jobs with its checked-in `jobs.lock`.
//!
//! ```no_run
//! // In a test of the crate that has the jobs, or of one that says `use my_jobs as _;`:
//! queue_testkit::lockfile::check!();
//! ```
//!
//! The file is only read, unless the environment asks for more:
//!
//! | `QUEUE_LOCKFILE` | a missing file | safe differences | breaking differences |
//! | --- | --- | --- | --- |
//! | not set, or `check` | fails | fails: out of date | fails |
//! | `update` | is written | are written | fails |
//! | `accept-breaking` | is written | are written | are written |

use std::fs;
use std::path::{Path, PathBuf};

use queue_runtime::lockfile::{self, FILE_NAME};
use queue_runtime::pipeline::declare::Registry;

/// Compares the jobs linked into this test with `jobs.lock` beside the crate's `Cargo.toml`, or
/// with the file of the given name there; see [`lockfile`](crate::lockfile).
///
/// # Panics
/// With every difference and its cure if the file is missing, damaged or out of date.
#[doc(hidden)]
#[macro_export]
macro_rules! __lockfile_check {
    () => {
        $crate::lockfile::__check(
            ::core::env!("CARGO_MANIFEST_DIR"),
            ::core::option::Option::None,
        )
    };
    ($file:expr $(,)?) => {
        $crate::lockfile::__check(
            ::core::env!("CARGO_MANIFEST_DIR"),
            ::core::option::Option::Some($file),
        )
    };
}

#[doc(inline)]
pub use crate::__lockfile_check as check;

/// What may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Check,
    /// The file, unless a difference is breaking.
    Update,
    /// The file.
    AcceptBreaking,
}

impl Mode {
    /// Reads the value of `QUEUE_LOCKFILE`.
    ///
    /// # Errors
    /// With the words that there are.
    pub fn of(value: Option<&str>) -> Result<Self, String> {
        match value {
            None | Some("" | "check") => Ok(Self::Check),
            Some("update") => Ok(Self::Update),
            Some("accept-breaking") => Ok(Self::AcceptBreaking),
            Some(other) => Err(format!(
                "QUEUE_LOCKFILE={other}: write `check`, `update` or `accept-breaking`"
            )),
        }
    }
}

/// Compares jobs with a file, and writes it if the mode allows; see [`lockfile`](crate::lockfile).
///
/// # Errors
/// With every difference and its cure, for people. The file is left as it is.
pub fn compare(registry: &Registry, file: &Path, mode: Mode) -> Result<(), String> {
    let shown = file.display();
    let text = match fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{shown}: {error}")),
    };
    let Some(text) = text else {
        return match mode {
            Mode::Check => Err(format!(
                "{shown} is missing. To write it, run this test with QUEUE_LOCKFILE=update, and check it in"
            )),
            _ => write(registry, file),
        };
    };
    let report = match lockfile::check(registry, &text) {
        Ok(report) => report,
        Err(error @ lockfile::LockfileError::Newer { .. }) => {
            return Err(format!("{shown}: {error}"));
        }
        Err(error) if mode == Mode::AcceptBreaking => {
            // The text says nothing any more; whoever accepts anything accepts this.
            let _ = error;
            return write(registry, file);
        }
        Err(error) => {
            return Err(format!(
                "{shown}: {error}. Take the file of the last release back, or write it anew from the code with \
                 QUEUE_LOCKFILE=accept-breaking"
            ));
        }
    };
    match mode {
        _ if report.current => Ok(()),
        Mode::AcceptBreaking => write(registry, file),
        Mode::Update if !report.is_breaking() => write(registry, file),
        _ if report.is_breaking() => Err(format!(
            "{shown}: these edits would strand jobs that wait, or break workers that still run the build \
             before:\n\n{report}\nIf that strands nobody (no such job waits; or, where only old workers \
             break, none runs beside this build): run this test with QUEUE_LOCKFILE=accept-breaking, and check the \
             file in."
        )),
        _ => Err(format!(
            "{shown} is out of date. Nothing breaks:\n\n{report}\nRun this test with QUEUE_LOCKFILE=update, and \
             check the file in."
        )),
    }
}

fn write(registry: &Registry, file: &Path) -> Result<(), String> {
    // Another test binary of the crate may look at it meanwhile.
    let beside = file.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&beside, lockfile::render(registry))
        .and_then(|()| fs::rename(&beside, file))
        .map_err(|error| format!("{}: {error}", file.display()))
}

#[doc(hidden)]
#[track_caller]
pub fn __check(compiled_in: &str, name: Option<&str>) {
    // Cargo's word at run time: the one at build time may be of another checkout that shares the
    // target folder.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| compiled_in.into());
    let file = PathBuf::from(folder).join(name.unwrap_or(FILE_NAME));
    let mode = std::env::var("QUEUE_LOCKFILE").ok();
    let result = Mode::of(mode.as_deref()).and_then(|mode| {
        let registry = Registry::discover().map_err(|faults| faults.join("\n"))?;
        compare(&registry, &file, mode)
    });
    if let Err(told) = result {
        panic!("{told}");
    }
}
