//! A mark for errors that trying again cannot help, for code that knows nothing of jobs' errors.

use std::error::Error;
use std::fmt;

use crate::error::BoxError;

/// Marks an error as permanent in a way that survives `anyhow`, boxes and being a source.
///
/// ```
/// use queue_runtime::{Permanent, job};
///
/// type BoxError = Box<dyn std::error::Error + Send + Sync>;
///
/// // A library that knows nothing of jobs.
/// fn address(text: &str) -> Result<&str, BoxError> {
///     match text.contains('@') {
///         true => Ok(text),
///         false => Err(Permanent::new("not an address").into()),
///     }
/// }
///
/// #[job]
/// async fn send_welcome(email: String) -> Result<(), BoxError> {
///     println!("welcome, {}", address(&email)?);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Permanent {
    // The mark is one link down, because an error that has been boxed by another library cannot
    // be recognised by its own type any more; its sources can.
    mark: PermanentMark,
}

impl Permanent {
    /// Marks an error.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self {
            mark: PermanentMark(error.into()),
        }
    }
}

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.mark, f)
    }
}

impl Error for Permanent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.mark)
    }
}

#[derive(Debug)]
pub(super) struct PermanentMark(BoxError);

impl fmt::Display for PermanentMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for PermanentMark {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
