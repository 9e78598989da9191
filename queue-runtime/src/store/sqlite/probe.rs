//! What a new job with keys meets in the store, as one probe finds it; the decision is the rule's.

use sqlx::sqlite::SqliteRow;

use super::error::Fault;
use super::rows::Columns;
use crate::job::{Fingerprint, JobId, JobState};
use crate::rules::dedupe::{Holder, Met};
use crate::store::round::{self, Probed};

/// Reads a row of the probe.
pub(super) fn probed(row: &SqliteRow) -> Result<Probed, Fault> {
    let mut columns = Columns::of(row);
    let stored = columns.take()?;
    let key_job: Option<JobId> = columns.parsed_opt("job_id")?;
    let fingerprint: Option<String> = columns.take()?;
    let state: Option<JobState> = columns.parsed_opt("final_state")?;
    let request = key_job.zip(fingerprint).map(|(id, fingerprint)| {
        let fingerprint = Fingerprint::from_stored(fingerprint);
        (round::holder(id, state, false), fingerprint)
    });
    let met = Met {
        request,
        window: holder(&mut columns)?,
        slots: [holder(&mut columns)?, holder(&mut columns)?],
    };
    Ok(Probed { stored, met })
}

fn holder(columns: &mut Columns<'_>) -> Result<Option<Holder>, Fault> {
    let id: Option<JobId> = columns.parsed_opt("job_id")?;
    let state: Option<JobState> = columns.parsed_opt("status")?;
    let payload_differs: bool = columns.take()?;
    Ok(id.map(|id| round::holder(id, state, payload_differs)))
}
