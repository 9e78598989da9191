//! A new job as the writer takes it: made ready by the caller's task, so that the one writer
//! only strings rows together.

use crate::job::{CacheKey, Dedupe, DedupeUntil, Due, Idempotency, JobId, JobType, NewJob};
use crate::store::round::{self, Offered};
use crate::time::Timestamp;

use super::rows::{json, span_ms};

/// A job that is ready to be inserted.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) id: JobId,
    /// The row of `insert.sql` as JSON, but for its last two columns and the closing bracket.
    pub(super) row: String,
    pub(super) cache: Option<CacheKey>,
    /// What a job with keys needs to be decided about; `None` for a plain job.
    pub(super) keys: Option<Box<Keys>>,
    /// Whether it can be claimed at once.
    pub(super) due: bool,
}

/// The keys of a job, and what a replaced job takes over.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) job_type: JobType,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) dedupe: Option<Dedupe>,
    pub(super) payload: String,
    pub(super) payload_schema: u32,
    pub(super) priority: i16,
    pub(super) trace_context: Option<String>,
}

impl Offered for Prepared {
    fn id(&self) -> JobId {
        self.id
    }

    fn keys(&self) -> Option<round::Keys<'_>> {
        self.keys.as_deref().map(|keys| round::Keys {
            job_type: &keys.job_type,
            idempotency: keys.idempotency.as_ref(),
            dedupe: keys.dedupe.as_ref(),
        })
    }

    fn cache(&self) -> Option<&CacheKey> {
        self.cache.as_ref()
    }
}

impl Prepared {
    /// Makes a job ready; `now` only serves to tell whether a wake-up is worth while.
    pub(super) fn new(job: &NewJob, now: Timestamp) -> Self {
        let until_started = job
            .dedupe
            .as_ref()
            .is_some_and(|dedupe| dedupe.until == DedupeUntil::Started);
        let (after, at) = match job.due {
            Due::Now => (None, None),
            Due::After(delay) => (Some(span_ms(delay)), None),
            Due::At(at) => (None, Some(at.as_millis())),
        };
        // Serde writes tuples of at most 16 places; the last two follow in `push_row`.
        let mut row = json(&(
            job.id.to_string(),
            job.job_type.as_str(),
            job.queue.as_str(),
            job.payload_schema,
            job.priority,
            job.max_attempts,
            after,
            at,
            job.deadline.map(span_ms),
            u8::from(until_started),
            job.idempotency.as_ref().map(|key| key.key.as_str()),
            job.cache.as_ref().map(|cache| cache.key.as_str()),
            job.cache.as_ref().map(|cache| cache.version),
            job.trace_context.as_deref(),
            job.payload.as_str(),
        ));
        row.pop();
        let has_keys = job.dedupe.is_some() || job.idempotency.is_some();
        Self {
            id: job.id,
            row,
            cache: job.cache.clone(),
            keys: has_keys.then(|| {
                Box::new(Keys {
                    job_type: job.job_type.clone(),
                    idempotency: job.idempotency.clone(),
                    dedupe: job.dedupe.clone(),
                    payload: job.payload.clone(),
                    payload_schema: job.payload_schema,
                    priority: job.priority,
                    trace_context: job.trace_context.clone(),
                })
            }),
            due: job.due.is_at_once(now),
        }
    }

    /// Adds the whole row to a batch, for a slot of its dedupe key.
    pub(super) fn push_row(&self, batch: &mut String, slot: u8) {
        let held = self.keys().and_then(round::Keys::held);
        batch.push_str(&self.row);
        batch.push(',');
        match held {
            Some(key) => batch.push_str(&json(key)),
            None => batch.push_str("null"),
        }
        batch.push_str(if slot == 0 { ",0]" } else { ",1]" });
    }
}
