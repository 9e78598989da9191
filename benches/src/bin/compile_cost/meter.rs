//! Processor time of a command and of everything that it starts.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Of the counters below; fixed for programs on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Runs a command to its end and returns the seconds of processor time that it took, in user code and in the
/// system, with its children.
pub(crate) fn cpu_seconds(mut command: Command) -> Result<f64> {
    let before = ticks_of_children()?;
    let output = command.output().context("start cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed:\n{said}");
    Ok((ticks_of_children()? - before) / TICKS_PER_SECOND)
}

/// What the ended and awaited children of this process have used.
fn ticks_of_children() -> Result<f64> {
    let stat =
        fs::read_to_string("/proc/self/stat").context("processor time is read on Linux only")?;
    // The name of the program, in brackets, may hold spaces; the fields count from behind it.
    let (_, fields) = stat
        .rsplit_once(')')
        .context("/proc/self/stat has no name")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |index: usize| -> Result<f64> {
        let field = fields.get(index).context("/proc/self/stat is too short")?;
        Ok(field.parse()?)
    };
    Ok(ticks(13)? + ticks(14)?)
}
