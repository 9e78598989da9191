//! Whether the file that a store has opened is still the one at its path.
//!
//! SQLite does not look: it goes on in a file that was deleted or replaced, where every job that
//! is accepted is lost when the process ends. So the store looks by itself, with one call to the
//! operating system: after each commit and before its answer, at the start of each transaction
//! of the application's, and around each new connection. Where a file has no number of its own
//! (not on Unix), or the path cannot be looked at, the file counts as there.

use std::path::{Path, PathBuf};

use crate::error::{StoreError, StoreErrorKind};

/// A file that was opened, known by more than its name.
#[derive(Clone, Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    number: Option<Number>,
}

/// The device and the number on it, by which Unix knows a file.
type Number = (u64, u64);

/// What there is at a path.
#[derive(PartialEq, Eq)]
enum Found {
    File(Number),
    Nothing,
    Unknown,
}

impl OpenedFile {
    /// Remembers the file that is at a path.
    pub(super) fn at(path: &Path) -> Self {
        let number = match look(path) {
            Found::File(number) => Some(number),
            Found::Nothing | Found::Unknown => None,
        };
        Self {
            path: path.to_owned(),
            number,
        }
    }

    /// Says whether nothing, or another file, is at the path now.
    pub(super) fn is_gone(&self) -> bool {
        let Some(number) = self.number else {
            return false;
        };
        match look(&self.path) {
            Found::File(now) => now != number,
            Found::Nothing => true,
            Found::Unknown => false,
        }
    }

    /// The answer to whoever would have something kept in a file that is gone. No outage:
    /// waiting does not bring a deleted file back, so a worker ends with it.
    pub(super) fn gone(&self, operation: &'static str) -> StoreError {
        StoreError::new(
            StoreErrorKind::Corrupt,
            operation,
            format!(
                "database {}: the file was deleted or replaced while it was open, so nothing \
                 more is kept in it. Put it back, or start this program again to go on with \
                 what is there now",
                super::connect::for_people(&self.path)
            ),
        )
    }

    /// Refuses to go on with a file that is gone.
    pub(super) fn verify(&self, operation: &'static str) -> Result<(), StoreError> {
        match self.is_gone() {
            true => Err(self.gone(operation)),
            false => Ok(()),
        }
    }
}

#[cfg(unix)]
fn look(path: &Path) -> Found {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata(path) {
        Ok(meta) => Found::File((meta.dev(), meta.ino())),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Found::Nothing,
        Err(_) => Found::Unknown,
    }
}

#[cfg(not(unix))]
fn look(_: &Path) -> Found {
    Found::Unknown
}
