//! From a typed job to what is stored: the payload as text, the keys, and every bound checked.

use std::time::Duration;

use crate::backend::Backend;
use crate::error::EnqueueError;
use crate::handler::{Job, JobDef};
use crate::job::{
    CacheKey, Dedupe, DedupeUntil, Due, Idempotency, JobId, JobType, NewJob, PayloadWriter,
    QueueName,
};
use crate::rules::{dedupe, limits, payload};

/// What a caller adds to the options of the job's declaration.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) due: Due,
    pub(super) priority: Option<i16>,
    pub(super) queue: Option<String>,
    pub(super) retries: Option<u32>,
    pub(super) deadline: Option<Duration>,
    pub(super) dedupe_key: Option<String>,
    pub(super) idempotency_key: Option<String>,
    pub(super) idempotency_for: Option<Duration>,
}

/// Encodes and validates one job.
pub(super) fn prepare<J: Job>(
    backend: &Backend,
    id: JobId,
    payload: &J,
    options: &Options,
) -> Result<NewJob, EnqueueError> {
    let def = J::DEF;
    let queue = options.queue.as_deref().unwrap_or(def.queue);
    let priority = options.priority.unwrap_or(def.priority);
    let retries = options.retries.unwrap_or(def.retries);
    let deadline = options.deadline.or(def.deadline);
    limits::check_priority(priority)?;
    limits::check_retries(retries)?;
    limits::check_due(options.due, backend.seam().now())?;
    if let Some(deadline) = deadline {
        limits::check_deadline(deadline)?;
    }
    let text = encode(def, payload)?;
    let dedupe = match options.dedupe_key.clone().or_else(|| payload.dedupe_key()) {
        Some(key) => Some(keyed(def, key)?),
        None => None,
    };
    let idempotency = match options
        .idempotency_key
        .clone()
        .or_else(|| payload.idempotency_key())
    {
        Some(key) => Some(remembered(def, options, key, &text)?),
        None => None,
    };
    Ok(NewJob {
        id,
        job_type: JobType::new(def.name)?,
        queue: QueueName::new(queue)?,
        payload: text,
        payload_schema: def.schema,
        priority,
        max_attempts: retries.saturating_add(1),
        due: options.due,
        deadline,
        dedupe,
        idempotency,
        cache: refreshed(payload)?,
        trace_context: None,
    })
}

pub(super) fn encode<J: Job>(def: &JobDef, job: &J) -> Result<String, EnqueueError> {
    let job_type = || def.name.to_owned();
    let invalid = |source| EnqueueError::InvalidPayload {
        job_type: job_type(),
        source,
    };
    let mut writer = PayloadWriter::new();
    job.encode(&mut writer).map_err(invalid)?;
    let text = writer.finish();
    let (size, limit) = (text.len(), payload::PAYLOAD_BYTES_MAX);
    if size > limit {
        return Err(EnqueueError::PayloadTooLarge {
            job_type: job_type(),
            size,
            limit,
        });
    }
    payload::check(&text).map_err(invalid)?;
    Ok(text)
}

pub(super) fn keyed(def: &JobDef, key: String) -> Result<Dedupe, EnqueueError> {
    dedupe::check_key("dedupe key", &key)?;
    if let DedupeUntil::Window(window) = def.dedupe_until {
        limits::check_window("dedupe window", window)?;
    }
    Ok(Dedupe {
        key,
        until: def.dedupe_until,
        on_duplicate: def.on_duplicate,
    })
}

fn remembered(
    def: &JobDef,
    options: &Options,
    key: String,
    payload: &str,
) -> Result<Idempotency, EnqueueError> {
    let window = options.idempotency_for.unwrap_or(def.idempotency_for);
    dedupe::check_key("idempotency key", &key)?;
    limits::check_window("idempotency window", window)?;
    Ok(Idempotency {
        key,
        fingerprint: dedupe::fingerprint(payload),
        window,
    })
}

pub(super) fn refreshed<J: Job>(payload: &J) -> Result<Option<CacheKey>, EnqueueError> {
    let Some(key) = payload.cache_key() else {
        return Ok(None);
    };
    dedupe::check_key("cache key", &key)?;
    match payload.cache_version() {
        Some(version) if i64::try_from(version).is_ok() => Ok(Some(CacheKey { key, version })),
        other => Err(EnqueueError::OutOfRange {
            what: "cache version",
            value: other.map_or("below zero".to_owned(), |version| version.to_string()),
            rule: format!("must be from 0 to {}", i64::MAX),
        }),
    }
}
