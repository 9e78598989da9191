//! Recognises faults in error values, so that the table of classes can say what they mean.

use std::error::Error;
use std::fmt;

use super::permanent::PermanentMark;
use crate::rules::classify::{Class, Fault};

/// How many sources of an error are looked at; a chain of sources may have no end.
pub(super) const LINKS_MAX: usize = 64;

/// Says what an error of the user's own means for its job.
///
/// Usually derived: `#[derive(Classify)]` on an error enum, with `#[job(permanent)]` on the
/// variants that trying again cannot help. By hand, where a variant alone does not say it:
///
/// ```
/// use queue_runtime::{Class, Classify, job};
///
/// #[derive(Debug, thiserror::Error)]
/// enum ShopError {
///     #[error("the shop answered with code {0}")]
///     Refused(u32),
///     #[error("connection")]
///     Connection(#[from] std::io::Error),
/// }
///
/// impl Classify for ShopError {
///     fn class(&self) -> Class {
///         match self {
///             Self::Refused(1000..2000) => Class::Permanent,
///             Self::Refused(_) => Class::Retry,
///             Self::Connection(_) => Class::Unknown,
///         }
///     }
/// }
///
/// #[job]
/// async fn reserve(order: u32) -> Result<(), ShopError> {
///     Err(ShopError::Refused(order))
/// }
/// ```
pub trait Classify {
    /// Returns the class of this error; `Unknown` leaves it to the built-in table.
    fn class(&self) -> Class;
}

/// An HTTP status that a service answered with, as an error: 408, 425, 429 and 5xx are tried
/// again, other 4xx are not.
///
/// HTTP clients have error types of their own; this is what to make of their answer:
///
/// ```
/// use queue_runtime::{JobError, StatusError, job};
///
/// async fn post(url: &str) -> std::io::Result<u16> {
///     let _ = url;
///     Ok(404)
/// }
///
/// #[job]
/// async fn deliver(url: String) -> Result<(), JobError> {
///     match post(&url).await? {
///         200..300 => Ok(()),
///         status => Err(StatusError(status).into()),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusError(pub u16);

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP status {}", self.0)
    }
}

impl Error for StatusError {}

/// Finds the first fault that is known, from the error through its sources.
pub fn recognise(error: &(dyn Error + 'static)) -> Option<Fault> {
    let mut link = Some(error);
    for _ in 0..LINKS_MAX {
        let Some(error) = link else { break };
        if let Some(fault) = recognise_link(error) {
            return Some(fault);
        }
        link = error.source();
    }
    None
}

fn recognise_link(error: &(dyn Error + 'static)) -> Option<Fault> {
    if error.is::<PermanentMark>() {
        return Some(Fault::MarkedPermanent);
    }
    if let Some(StatusError(status)) = error.downcast_ref() {
        return Some(Fault::HttpStatus(*status));
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return Some(of_io(error));
    }
    if error.is::<tokio::time::error::Elapsed>() {
        return Some(Fault::Timeout);
    }
    if let Some(error) = error.downcast_ref::<serde_json::Error>() {
        return Some(if error.is_io() {
            Fault::Io
        } else {
            Fault::Validation
        });
    }
    of_number(error).or_else(|| of_sqlx(error))
}

fn of_io(error: &std::io::Error) -> Fault {
    use std::io::ErrorKind as K;
    match error.kind() {
        K::TimedOut => Fault::Timeout,
        K::ConnectionRefused
        | K::ConnectionReset
        | K::ConnectionAborted
        | K::NotConnected
        | K::BrokenPipe
        | K::HostUnreachable
        | K::NetworkUnreachable
        | K::NetworkDown => Fault::ConnectionLost,
        _ => Fault::Io,
    }
}

fn of_number(error: &(dyn Error + 'static)) -> Option<Fault> {
    let is_parse_error = error.is::<std::num::ParseIntError>()
        || error.is::<std::num::ParseFloatError>()
        || error.is::<std::num::TryFromIntError>()
        || error.is::<std::str::ParseBoolError>()
        || error.is::<std::str::Utf8Error>()
        || error.is::<std::string::FromUtf8Error>();
    is_parse_error.then_some(Fault::Validation)
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn of_sqlx(error: &(dyn Error + 'static)) -> Option<Fault> {
    use sqlx::error::ErrorKind as K;
    match error.downcast_ref::<sqlx::Error>()? {
        sqlx::Error::RowNotFound => Some(Fault::RowNotFound),
        sqlx::Error::Database(error) => match error.kind() {
            K::UniqueViolation
            | K::ForeignKeyViolation
            | K::NotNullViolation
            | K::CheckViolation => Some(Fault::ConstraintViolation),
            _ => None,
        },
        sqlx::Error::PoolTimedOut => Some(Fault::Timeout),
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => Some(Fault::ConnectionLost),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Some(Fault::Validation),
        _ => None,
    }
}

#[cfg(not(any(feature = "sqlite", feature = "postgres")))]
fn of_sqlx(_: &(dyn Error + 'static)) -> Option<Fault> {
    None
}

/// Asks an error for its class if its type has one; generated code calls
/// `(&Probe(&error)).class()`, where the methods below compete by the number of references.
#[derive(Debug)]
pub struct Probe<'a, E>(pub &'a E);

/// Wins where the error implements [`Classify`].
pub trait ByClassify {
    /// Returns what the error says.
    fn class(&self) -> Option<Class>;
}

/// Is left where it does not.
pub trait ByDefault {
    /// Returns nothing.
    fn class(&self) -> Option<Class>;
}

impl<E: Classify> ByClassify for Probe<'_, E> {
    fn class(&self) -> Option<Class> {
        Some(self.0.class())
    }
}

impl<E> ByDefault for &Probe<'_, E> {
    fn class(&self) -> Option<Class> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<dyn Error + Send + Sync>);

    fn check(error: impl Error + Send + Sync + 'static, expected: Option<Fault>) {
        assert_eq!(recognise(&error), expected, "{error:?}");
        let wrapped = Outer(Box::new(Outer(Box::new(error))));
        assert_eq!(recognise(&wrapped), expected, "two sources down");
    }

    #[test]
    fn faults_are_recognised_at_any_depth() {
        check(IoError::other("disk"), Some(Fault::Io));
        check(IoError::from(ErrorKind::TimedOut), Some(Fault::Timeout));
        check(
            IoError::from(ErrorKind::ConnectionRefused),
            Some(Fault::ConnectionLost),
        );
        check(StatusError(429), Some(Fault::HttpStatus(429)));
        check(StatusError(404), Some(Fault::HttpStatus(404)));
        let json = serde_json::from_str::<u8>("{").expect_err("no number");
        check(json, Some(Fault::Validation));
        check(
            "x".parse::<u8>().expect_err("no number"),
            Some(Fault::Validation),
        );
        check(fmt::Error, None);
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[test]
    fn database_faults_are_recognised() {
        check(sqlx::Error::RowNotFound, Some(Fault::RowNotFound));
        check(sqlx::Error::PoolTimedOut, Some(Fault::Timeout));
        check(sqlx::Error::PoolClosed, Some(Fault::ConnectionLost));
    }

    #[test]
    #[expect(clippy::needless_borrow, reason = "the form that generated code has")]
    fn an_errors_own_class_is_asked_where_there_is_one() {
        struct Own;
        impl Classify for Own {
            fn class(&self) -> Class {
                Class::Permanent
            }
        }
        assert_eq!((&Probe(&Own)).class(), Some(Class::Permanent));
        assert_eq!((&Probe(&"none")).class(), None);
    }
}
