//! How a handler says that it failed, and what should come of it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::classify::{LINKS_MAX, recognise};
use crate::error::{BoxError, PayloadError};
use crate::job::Outcome;
use crate::rules::classify::{Class, class};

/// Why an attempt did not succeed.
///
/// `?` on any standard error makes one that is retried, unless the
/// [classifier](crate::rules::classify) knows that trying again cannot help. The constructors
/// say it outright.
///
/// ```
/// use std::time::Duration;
///
/// use queue_runtime::{JobError, JobResultExt, job};
///
/// #[job]
/// async fn import(row: String) -> Result<(), JobError> {
///     // Text that is no number stays that: a dead letter, since the classifier knows this error.
///     let customer: u64 = row.parse()?;
///     // A file that cannot be read is tried again.
///     let file = std::fs::read(format!("/no/such/folder/{customer}"))?;
///     // What the handler knows better than the classifier it says itself.
///     match file.len() {
///         0 => Err(JobError::snooze(Duration::from_secs(60))),
///         1..1_000_000 => Ok(()),
///         _ => Err(JobError::permanent("the file is too large")),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let failed = import("7".to_owned()).await.expect_err("there is no such folder");
/// println!("{failed}");
/// # }
/// ```
///
/// It is deliberately not a `std::error::Error`, so that `?` can convert from all of them.
///
/// # With `anyhow`
///
/// A job that returns `anyhow::Result<()>` compiles, and the classifier looks at the sources of
/// its error. The outermost error itself is hidden by `anyhow`, so a bare `?` on an error that has
/// no source is not recognised and is tried again, even a 404 as [`StatusError`](super::StatusError).
/// Write one of these instead:
///
/// - `.context("fetch the invoice")?`, which makes the error a source, where it is recognised;
/// - `.map_err(Permanent::new)?` with [`Permanent`](super::Permanent), if trying again cannot help;
/// - `Result<(), JobError>` as the return type, where `?` keeps the type of a standard error.
///
/// Inside a job that returns `Result<(), JobError>`, `?` does not take an `anyhow::Error`: write
/// `.permanent()?` ([`JobResultExt`]) or `.map_err(JobError::retry)?`.
pub struct JobError {
    ending: Ending,
    error: Option<BoxError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Nobody said: the classifier decides.
    Unmarked,
    Retry,
    RetryAfter(Duration),
    Permanent,
    Undecodable,
    Snooze(Duration),
    Cancel,
}

impl JobError {
    fn new(ending: Ending, error: impl Into<BoxError>) -> Self {
        Self {
            ending,
            error: Some(error.into()),
        }
    }

    /// Tries again by the job's back-off, whatever the error is.
    pub fn retry(error: impl Into<BoxError>) -> Self {
        Self::new(Ending::Retry, error)
    }

    /// Tries again after `delay`; one of more than 30 days is cut to that.
    pub fn retry_after(delay: Duration, error: impl Into<BoxError>) -> Self {
        Self::new(Ending::RetryAfter(delay), error)
    }

    /// Does not try again: the job becomes a dead letter.
    pub fn permanent(error: impl Into<BoxError>) -> Self {
        Self::new(Ending::Permanent, error)
    }

    /// Runs the job again after `delay` without counting an attempt; this is no failure.
    pub fn snooze(delay: Duration) -> Self {
        Self {
            ending: Ending::Snooze(delay),
            error: None,
        }
    }

    /// Calls the job off: it is final and no dead letter.
    pub fn cancel(reason: impl Into<BoxError>) -> Self {
        Self::new(Ending::Cancel, reason)
    }

    /// The payload cannot be read; never tried again.
    pub(crate) fn undecodable(error: impl Into<BoxError>) -> Self {
        Self::new(Ending::Undecodable, error)
    }

    /// The error, if it is one about a payload.
    pub(crate) fn payload_error(&self) -> Option<&PayloadError> {
        self.error.as_ref()?.downcast_ref()
    }

    /// Takes over what the error's own type says, where the handler said nothing.
    #[doc(hidden)]
    #[must_use]
    pub fn classed(mut self, class: Option<Class>) -> Self {
        match (self.ending, class) {
            (Ending::Unmarked, Some(Class::Retry)) => self.ending = Ending::Retry,
            (Ending::Unmarked, Some(Class::Permanent)) => self.ending = Ending::Permanent,
            _ => {}
        }
        self
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        let error = self.to_string();
        match self.ending {
            Ending::Unmarked => match self.recognised() {
                Class::Permanent => Outcome::Permanent { error },
                Class::Retry | Class::Unknown => Outcome::Retry { error },
            },
            Ending::Retry => Outcome::Retry { error },
            Ending::RetryAfter(delay) => Outcome::RetryAfter { delay, error },
            Ending::Permanent => Outcome::Permanent { error },
            Ending::Undecodable => Outcome::Undecodable { error },
            Ending::Snooze(delay) => Outcome::Snooze { delay },
            Ending::Cancel => Outcome::Cancelled {
                reason: Some(error),
            },
        }
    }

    fn recognised(&self) -> Class {
        let error = self.error.as_deref().and_then(|error| recognise(error));
        error.map_or(Class::Unknown, class)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::new(Ending::Unmarked, error)
    }
}

/// The error and its sources, outermost first, without repeating what a source says again.
impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(error) = &self.error else {
            return write!(f, "{:?}", self.ending);
        };
        let mut said = error.to_string();
        f.write_str(&said)?;
        // Bounded, since a chain of sources may have no end.
        let mut source = error.source();
        for _ in 0..LINKS_MAX {
            let Some(inner) = source else { break };
            let text = inner.to_string();
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            source = inner.source();
        }
        Ok(())
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobError({:?}: {self})", self.ending)
    }
}

/// An error that a job may return: a [`JobError`], or anything that converts into a boxed
/// error, such as a `thiserror` enum, `anyhow::Error`, `String` or `&str`.
///
/// A bare `?` into `anyhow::Error` hides the error's type from the classifier: a 404 as
/// `StatusError` is tried again. `.context(..)` and [`Permanent`](super::Permanent) keep it in
/// sight; [`JobError`] says what to write.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error type of a `#[job]` function",
    label = "not an error type",
    note = "return `Result<(), queue_runtime::JobError>`, `anyhow::Result<()>`, or an error that \
            implements `std::error::Error + Send + Sync`",
    note = "a boxed error says that it may change threads: `Box<dyn std::error::Error + Send + Sync>`"
)]
pub trait IntoJobError {
    /// Converts; an error that is not marked is left for the classifier.
    fn into_job_error(self) -> JobError;
}

impl IntoJobError for JobError {
    fn into_job_error(self) -> JobError {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> IntoJobError for E {
    fn into_job_error(self) -> JobError {
        JobError::new(Ending::Unmarked, self)
    }
}

/// Says on a result what should come of its error: `fetch().await.permanent()?`.
///
/// ```
/// use std::time::Duration;
///
/// use queue_runtime::{JobError, JobResultExt, job};
///
/// async fn fetch(page: &str) -> std::io::Result<String> {
///     Ok(format!("<h1>{page}</h1>"))
/// }
///
/// #[job]
/// async fn render(config: String, page: String) -> Result<(), JobError> {
///     let _config: serde_json::Value = serde_json::from_str(&config).permanent()?;
///     let _text = fetch(&page).await.retry_after(Duration::from_secs(30))?;
///     Ok(())
/// }
/// ```
pub trait JobResultExt<T> {
    /// Makes the error permanent.
    ///
    /// # Errors
    /// The error, as one that is not tried again.
    fn permanent(self) -> Result<T, JobError>;

    /// Makes the error one that is tried again after `delay`.
    ///
    /// # Errors
    /// The error, as one that says when to come back.
    fn retry_after(self, delay: Duration) -> Result<T, JobError>;
}

impl<T, E: Into<BoxError>> JobResultExt<T> for Result<T, E> {
    fn permanent(self) -> Result<T, JobError> {
        self.map_err(JobError::permanent)
    }

    fn retry_after(self, delay: Duration) -> Result<T, JobError> {
        self.map_err(|error| JobError::retry_after(delay, error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Permanent;
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("send mail")]
    struct Send(#[source] std::io::Error);

    fn io() -> std::io::Error {
        std::io::Error::other("broken pipe")
    }

    #[test]
    fn a_message_holds_the_sources_once() {
        assert_eq!(
            JobError::from(Send(io())).to_string(),
            "send mail: broken pipe"
        );
        assert_eq!(
            JobError::from(Permanent::new(Send(io()))).to_string(),
            "send mail: broken pipe"
        );
    }

    #[test]
    fn an_unmarked_error_is_retried() {
        let outcome = "no idea".into_job_error().into_outcome();
        assert_eq!(
            outcome,
            Outcome::Retry {
                error: "no idea".to_owned()
            }
        );
    }

    #[test]
    fn a_permanent_mark_survives_boxes() {
        let boxed: BoxError = Box::new(Permanent::new("bad address"));
        let outcome = boxed.into_job_error().into_outcome();
        assert_eq!(
            outcome,
            Outcome::Permanent {
                error: "bad address".to_owned()
            }
        );
    }

    #[test]
    fn what_the_handler_says_wins_over_what_the_type_says() {
        let outcome = JobError::retry("x")
            .classed(Some(Class::Permanent))
            .into_outcome();
        assert_eq!(
            outcome,
            Outcome::Retry {
                error: "x".to_owned()
            }
        );
        let outcome = JobError::from(io())
            .classed(Some(Class::Permanent))
            .into_outcome();
        assert_eq!(
            outcome,
            Outcome::Permanent {
                error: "broken pipe".to_owned()
            }
        );
    }

    #[test]
    fn each_ending_has_its_outcome() {
        let day = Duration::from_hours(24);
        assert_eq!(
            JobError::snooze(day).into_outcome(),
            Outcome::Snooze { delay: day }
        );
        assert_eq!(
            JobError::retry_after(day, "busy").into_outcome(),
            Outcome::RetryAfter {
                delay: day,
                error: "busy".to_owned()
            }
        );
        assert_eq!(
            JobError::cancel("order withdrawn").into_outcome(),
            Outcome::Cancelled {
                reason: Some("order withdrawn".to_owned())
            }
        );
    }
}
