//! What a handler may return.

use serde::Serialize;

use super::def::RunResult;
use super::error::JobError;
use crate::cache::RefreshedValue;
use crate::rules::classify::Class;

/// A return type of a `#[job]` function: `()` or any `Result`.
#[diagnostic::on_unimplemented(
    message = "a `#[job]` function cannot return `{Self}`",
    label = "not a job's return type",
    note = "return `()`, or `Result<T, E>` with an error that can be shown"
)]
pub trait JobReturn {
    /// The value of a success.
    type Ok;
    /// The error.
    type Err;

    /// Takes the two apart.
    ///
    /// # Errors
    /// The handler's own.
    fn split(self) -> Result<Self::Ok, Self::Err>;
}

impl JobReturn for () {
    type Ok = ();
    type Err = JobError;

    fn split(self) -> Result<(), JobError> {
        Ok(())
    }
}

impl<T, E> JobReturn for Result<T, E> {
    type Ok = T;
    type Err = E;

    fn split(self) -> Self {
        self
    }
}

impl<T> JobReturn for Refreshed<T> {
    type Ok = Self;
    type Err = JobError;

    fn split(self) -> Result<Self, JobError> {
        Ok(self)
    }
}

/// Tells the runtime what a handler returned. All jobs of one return type share it, which is why
/// what differs between them comes as functions.
///
/// # Errors
/// The handler's own, with the class that `class` gives it.
#[inline(never)]
pub fn ended<T, E>(
    returned: Result<T, E>,
    into_value: fn(T) -> RunResult,
    class: fn(&E) -> Option<Class>,
    into_error: fn(E) -> JobError,
) -> RunResult {
    match returned {
        Ok(value) => into_value(value),
        Err(error) => {
            let class = class(&error);
            Err(into_error(error).classed(class))
        }
    }
}

/// What a successful run hands to the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct JobValue {
    pub(crate) refreshed: Option<RefreshedValue>,
}

/// A value that a job may return: anything serde can write. It is not kept.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a `#[job]` function",
    label = "cannot be written by serde",
    note = "derive `serde::Serialize` for it, or return `()`"
)]
pub trait JobOutput {
    /// Hands the value over.
    ///
    /// # Errors
    /// If it cannot be written.
    fn into_value(self) -> Result<JobValue, JobError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> JobOutput for T {
    fn into_value(self) -> Result<JobValue, JobError> {
        Ok(JobValue::default())
    }
}

/// As [`JobOutput`]. The macro asks it of a type called `Refreshed` whose job has no `cache`: of the
/// user's own it holds, of [`Refreshed`] it does not.
#[diagnostic::on_unimplemented(
    message = "a job that returns `{Self}` needs `cache` and `version`",
    label = "a refreshed value, and no entry to keep it in",
    note = "name the entry, and the argument with the version, as in \
            `#[job(cache = \"user:{{user_id}}\", version = \"version\")]`",
    note = "if nothing shall be cached, return the value itself"
)]
pub trait UncachedOutput {
    /// Hands the value over.
    ///
    /// # Errors
    /// If it cannot be written.
    fn into_value(self) -> Result<JobValue, JobError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> UncachedOutput for T {
    fn into_value(self) -> Result<JobValue, JobError> {
        JobOutput::into_value(self)
    }
}

/// What a refresh job found: a value with its version, nothing, or no change.
///
/// The handler never writes the cache. It returns this, and the runtime publishes it if no newer
/// version is known by then.
///
/// ```
/// use queue_runtime::{JobError, Refreshed, job};
///
/// /// Reads the row and the version that it has now.
/// async fn load_user(user_id: i64) -> std::io::Result<Option<(u64, String)>> {
///     Ok((user_id == 7).then(|| (3, "Ada".to_owned())))
/// }
///
/// #[job(cache = "user:{user_id}", version = "version")]
/// async fn refresh_user(user_id: i64, version: u64) -> Result<Refreshed<String>, JobError> {
///     let _ = version; // what it was enqueued for; the row may be newer
///     Ok(match load_user(user_id).await? {
///         Some((version, name)) => Refreshed::at(version, name),
///         None => Refreshed::gone(),
///     })
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), JobError> {
/// assert_eq!(refresh_user(7, 2).await?, Refreshed::at(3, "Ada".to_owned()));
/// # Ok(())
/// # }
/// ```
///
/// Readers look in the queue's [`Cache`](crate::cache::Cache).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refreshed<T>(Found<T>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Found<T> {
    At(u64, T),
    Gone,
    Unchanged,
}

impl<T> Refreshed<T> {
    /// The value, as it is at `version` of the data (the version that was read, which may be
    /// newer than the job's).
    pub fn at(version: u64, value: T) -> Self {
        Self(Found::At(version, value))
    }

    /// The thing does not exist (any more).
    pub fn gone() -> Self {
        Self(Found::Gone)
    }

    /// What is cached is still right.
    pub fn unchanged() -> Self {
        Self(Found::Unchanged)
    }
}

/// The result of a job with `cache`: a [`Refreshed`] value.
#[diagnostic::on_unimplemented(
    message = "a job with `cache` must return `Refreshed<T>`, not `{Self}`",
    label = "not a refreshed value",
    note = "return `Ok(Refreshed::at(version, value))` or `Ok(Refreshed::gone())`"
)]
pub trait RefreshedOutput {
    /// Hands the value over.
    ///
    /// # Errors
    /// If it cannot be written as JSON; permanent.
    fn into_value(self) -> Result<JobValue, JobError>;
}

impl<T: Serialize> RefreshedOutput for Refreshed<T> {
    fn into_value(self) -> Result<JobValue, JobError> {
        let refreshed = match self.0 {
            Found::At(version, value) => RefreshedValue::At {
                version,
                json: serde_json::to_string(&value).map_err(JobError::permanent)?,
            },
            Found::Gone => RefreshedValue::Gone,
            Found::Unchanged => RefreshedValue::Unchanged,
        };
        Ok(JobValue {
            refreshed: Some(refreshed),
        })
    }
}
