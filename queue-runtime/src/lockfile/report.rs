//! What a check found, and how it is told.

use std::fmt;

use crate::rules::evolution::{Change, Verdict};

/// The differences between `jobs.lock` and the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every difference that means something.
    pub changes: Vec<Change>,
    /// Whether the file says exactly what the program says.
    pub current: bool,
    /// Places whose insides are not seen, with the job's name and path: edits there are not found.
    pub unseen: Vec<String>,
}

impl Report {
    /// Whether something would strand rows, or break workers of the build before.
    pub fn is_breaking(&self) -> bool {
        self.changes.iter().any(Change::is_breaking)
    }
}

/// One paragraph for each difference, breaking ones first; empty without any.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (breaking, safe): (Vec<&Change>, Vec<&Change>) =
            self.changes.iter().partition(|change| change.is_breaking());
        for change in breaking.into_iter().chain(safe) {
            tell(f, change)?;
        }
        Ok(())
    }
}

fn tell(f: &mut fmt::Formatter<'_>, change: &Change) -> fmt::Result {
    let Change {
        job,
        path,
        what,
        rows,
        workers,
    } = change;
    let word = match (rows, workers) {
        _ if change.is_breaking() => "BREAKING",
        (Verdict::Safe, Verdict::Safe) => "safe",
        _ => "covered by the schema number",
    };
    writeln!(f, "{word}: job `{job}`, {path}: {what}")?;
    for (whom, verdict) in [("waiting rows", rows), ("old workers", workers)] {
        if let Verdict::Breaking(fault) = verdict {
            writeln!(f, "    {whom}: {}", fault.why)?;
            writeln!(f, "    cure: {}", fault.cure)?;
        }
    }
    Ok(())
}
