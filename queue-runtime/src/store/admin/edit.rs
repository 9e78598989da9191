//! Another payload for a job that runs again.

use crate::error::PayloadError;
use crate::job::{CacheKey, JobType};
use crate::rules::payload;

/// Another payload for a dead letter or a cancelled job, put in place by
/// [`replay_with`](super::Admin::replay_with).
///
/// An operator's tool makes one from text, and the job keeps its type and all its keys as stored.
/// `Queue::replay_with` makes one from a typed job, and says with [`of_job`](Self::of_job) what
/// follows from the type.
///
/// ```
/// use queue_runtime::store::Edit;
///
/// let edit = Edit::new(r#"{"user_id":42}"#, 1)?;
/// assert_eq!((edit.payload(), edit.schema()), (r#"{"user_id":42}"#, 1));
///
/// let refused = Edit::new("[42]", 1).unwrap_err();
/// assert!(refused.to_string().starts_with("$: must be a JSON object"));
/// # Ok::<(), queue_runtime::error::PayloadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    payload: String,
    schema: u32,
    job: Option<EditedJob>,
}

impl Edit {
    /// Takes a payload as JSON text, and the number of its shape, from 1.
    ///
    /// # Errors
    /// If the text is not a JSON object, or is not one that an enqueue would store: at most 1 MiB,
    /// at most 64 levels deep, no NUL; or if the number is 0.
    pub fn new(payload: impl Into<String>, schema: u32) -> Result<Self, PayloadError> {
        let payload = payload.into();
        payload::check_object(&payload)?;
        payload::check_schema(schema)?;
        Ok(Self {
            payload,
            schema,
            job: None,
        })
    }

    /// Adds what follows from the type of the job.
    #[must_use]
    pub fn of_job(mut self, job: EditedJob) -> Self {
        self.job = Some(job);
        self
    }

    /// Returns the payload, a JSON object.
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// Returns the number of the payload's shape.
    pub const fn schema(&self) -> u32 {
        self.schema
    }

    /// Returns what follows from the type of the job; `None` leaves type and keys as stored.
    pub const fn job(&self) -> Option<&EditedJob> {
        self.job.as_ref()
    }

    /// Says whether a job of this stored type may have the payload.
    pub fn is_for(&self, job_type: &str) -> bool {
        let mut names = self.job.iter().flat_map(|job| &job.job_types);
        self.job.is_none() || names.any(|name| name.as_str() == job_type)
    }
}

/// What a typed edit says beside the payload. Everything in it has been validated, as in a
/// [`NewJob`](crate::job::NewJob).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedJob {
    /// The stored names that the job's definition runs: a job of another type is left alone.
    pub job_types: Vec<JobType>,
    /// The dedupe key that the job holds from now on, in place of the stored one.
    pub dedupe_key: Option<String>,
    /// Whether it gives that key up when its first attempt starts.
    pub dedupe_until_started: bool,
    /// The cache entry that it refreshes from now on, and the version of the data; announced as
    /// by an insert.
    pub cache: Option<CacheKey>,
}
