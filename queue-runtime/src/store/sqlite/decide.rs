//! What becomes of a new job with keys, from what it meets in the store.
//!
//! The probe looks once; the decision is pure and leaves the rule about slots to
//! [`rules::dedupe`](crate::rules::dedupe).

use sqlx::sqlite::SqliteRow;

use super::encode::Keys;
use super::error::Fault;
use super::rows::Columns;
use crate::job::{DedupeUntil, JobId, JobState, OnDuplicate};
use crate::rules::dedupe::{Placement, SlotHolder, differing_fields, place};

/// What a job with keys meets in the store.
pub(super) struct Met {
    stored: bool,
    idempotency: Option<(JobId, String, JobState)>,
    window: Option<Holder>,
    first: Option<Holder>,
    second: Option<Holder>,
}

/// A job that holds a dedupe key.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    pub(super) id: JobId,
    pub(super) state: JobState,
    pub(super) payload_differs: bool,
}

/// What becomes of a job with keys.
pub(super) enum Decision {
    /// Its id is stored already.
    Known,
    /// Inserted in this slot of its dedupe key.
    Insert { slot: u8 },
    /// Answered with an existing job, whose payload may be rewritten and to which the
    /// idempotency key, if one was given, is then bound.
    Merge {
        holder: Holder,
        rewrite: bool,
        bind: bool,
    },
    /// Refused.
    Conflict {
        existing: JobId,
        fields: Vec<String>,
    },
}

/// Decides from what the job meets; idempotency comes before dedupe.
pub(super) fn decide(keys: &Keys, met: &Met) -> Decision {
    if met.stored {
        return Decision::Known;
    }
    if let (Some(asked), Some((existing, fingerprint, state))) =
        (&keys.idempotency, &met.idempotency)
    {
        let new = asked.fingerprint.as_str();
        if fingerprint != new {
            return Decision::Conflict {
                existing: *existing,
                fields: differing_fields(fingerprint, new),
            };
        }
        let holder = Holder {
            id: *existing,
            state: *state,
            payload_differs: false,
        };
        return Decision::Merge {
            holder,
            rewrite: false,
            bind: false,
        };
    }
    let Some(dedupe) = &keys.dedupe else {
        return Decision::Insert { slot: 0 };
    };
    let replace = dedupe.on_duplicate == OnDuplicate::Replace;
    let merge = |holder: Holder, rewrite: bool| Decision::Merge {
        holder,
        rewrite,
        bind: keys.idempotency.is_some(),
    };
    if matches!(dedupe.until, DedupeUntil::Window(_)) {
        return match met.window {
            Some(holder) => merge(holder, replace && holder.state == JobState::Queued),
            None => Decision::Insert { slot: 0 },
        };
    }
    let holder = met.first.map(|first| match first.state {
        JobState::Processing => SlotHolder::Processing,
        _ => SlotHolder::Waiting,
    });
    match place(dedupe.on_duplicate, holder, met.second.is_some()) {
        Placement::Insert { slot } => Decision::Insert { slot },
        Placement::Answer { slot, rewrite } => {
            let answering = if slot == 0 { met.first } else { met.second };
            answering.map_or(Decision::Insert { slot }, |holder| merge(holder, rewrite))
        }
    }
}

/// Reads a row of the probe.
pub(super) fn met(row: &SqliteRow) -> Result<Met, Fault> {
    let mut columns = Columns::of(row);
    let stored = columns.take()?;
    let key_job: Option<JobId> = columns.parsed_opt("job_id")?;
    let fingerprint: Option<String> = columns.take()?;
    let state: Option<JobState> = columns.parsed_opt("final_state")?;
    let idempotency = key_job.zip(fingerprint).map(|(job, fingerprint)| {
        // A job that is gone without a remembered state was final, or it would still be here.
        (job, fingerprint, state.unwrap_or(JobState::Done))
    });
    Ok(Met {
        stored,
        idempotency,
        window: holder(&mut columns)?,
        first: holder(&mut columns)?,
        second: holder(&mut columns)?,
    })
}

fn holder(columns: &mut Columns<'_>) -> Result<Option<Holder>, Fault> {
    let id: Option<JobId> = columns.parsed_opt("job_id")?;
    let state: Option<JobState> = columns.parsed_opt("status")?;
    let payload_differs: bool = columns.take()?;
    Ok(id.map(|id| Holder {
        id,
        state: state.unwrap_or(JobState::Done),
        payload_differs,
    }))
}
