//! From a typed job to an edit of a stored one: another payload, and the keys that follow from it.

use super::prepare::{encode, keyed, refreshed};
use crate::error::EnqueueError;
use crate::handler::Job;
use crate::job::{DedupeUntil, JobRecord, JobType};
use crate::rules::dedupe::{EditedKey, edited_key};
use crate::store::{Edit, EditedJob};

/// Encodes and validates another payload for a stored job, as for an enqueue. `stored` is the job
/// as it is, or `None` if it cannot be read.
pub(crate) fn edit<J: Job>(job: &J, stored: Option<&JobRecord>) -> Result<Edit, EnqueueError> {
    let def = J::DEF;
    let text = encode(def, job)?;
    let after = match job.dedupe_key() {
        Some(key) => Some(keyed(def, key)?.key),
        None => None,
    };
    let before =
        stored.and_then(|stored| J::from_stored(&stored.payload, stored.payload_schema).ok());
    let before = before.map(|before| before.dedupe_key());
    let key = edited_key(
        &EditedKey {
            stored: stored.and_then(|stored| stored.dedupe_key.as_deref()),
            before: before.as_ref().map(Option::as_deref),
            after: after.as_deref(),
        },
        def.dedupe_until,
    );
    let names = std::iter::once(def.name).chain(def.aliases.iter().copied());
    let edited = EditedJob {
        job_types: names.map(JobType::new).collect::<Result<_, _>>()?,
        dedupe_key: key.map(str::to_owned),
        dedupe_until_started: def.dedupe_until == DedupeUntil::Started,
        cache: refreshed(job)?,
    };
    let edit = Edit::new(text, def.schema);
    let edit = edit.map_err(|source| EnqueueError::InvalidPayload {
        job_type: def.name.to_owned(),
        source,
    })?;
    Ok(edit.of_job(edited))
}
