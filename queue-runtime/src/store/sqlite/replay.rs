//! Lets a dead letter or a cancelled job run again, with its own payload or another.

use sqlx::sqlite::SqliteConnection;

use super::actions::find;
use super::error::Fault;
use super::rows::{Batch, Columns};
use super::statements::Statements;
use crate::job::{JobId, JobState, JobType};
use crate::store::{Edit, Replaying};
use crate::time::Timestamp;

/// Replays a job inside the open writing transaction.
pub(super) async fn replay(
    conn: &mut SqliteConnection,
    statements: &Statements,
    now: Timestamp,
    id: JobId,
    as_new: bool,
    edit: Option<&Edit>,
) -> Result<Replaying, Fault> {
    let Some(job) = find(conn, statements, id).await? else {
        return Ok(Replaying::NotFound);
    };
    if !matches!(job.state, JobState::DeadLetter | JobState::Cancelled) {
        return Ok(Replaying::NotReplayable(job.state));
    }
    if edit.is_some_and(|edit| !edit.is_for(&job.job_type)) {
        return Ok(Replaying::OtherType(parsed(&job.job_type)?));
    }
    let key = match edit.and_then(Edit::job) {
        Some(edited) => &edited.dedupe_key,
        None => &job.dedupe_key,
    };
    if let Some(key) = key {
        let holder = statements
            .replay_holder
            .query()
            .bind(job.job_type)
            .bind(key.clone())
            .fetch_optional(&mut *conn)
            .await?;
        if let Some(row) = holder {
            return Ok(Replaying::Duplicate(Columns::of(&row).parsed("id")?));
        }
    }
    if let Some(edit) = edit {
        announce(conn, statements, edit).await?;
        put_in_place(conn, statements, job.seq, edit).await?;
    }
    statements
        .replay
        .query()
        .bind(job.seq)
        .bind(now.as_millis())
        .bind(i64::from(as_new))
        .execute(&mut *conn)
        .await?;
    statements
        .replay_remove
        .query()
        .bind(job.seq)
        .execute(&mut *conn)
        .await?;
    statements
        .replay_keys
        .query()
        .bind(id.to_string())
        .execute(&mut *conn)
        .await?;
    Ok(Replaying::Replayed)
}

/// Raises the version of the cached thing that the job refreshes from now on.
async fn announce(
    conn: &mut SqliteConnection,
    statements: &Statements,
    edit: &Edit,
) -> Result<(), Fault> {
    let mut batch = Batch::default();
    for cache in edit.job().iter().filter_map(|edited| edited.cache.as_ref()) {
        batch.push(&(&cache.key, cache.version, None::<String>));
    }
    if let Some(batch) = batch.finish() {
        statements
            .insert_version
            .query()
            .bind(batch)
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

async fn put_in_place(
    conn: &mut SqliteConnection,
    statements: &Statements,
    seq: i64,
    edit: &Edit,
) -> Result<(), Fault> {
    let edited = edit.job();
    let cache = edited.and_then(|edited| edited.cache.clone());
    statements
        .replay_edit
        .query()
        .bind(seq)
        .bind(edit.payload().to_owned())
        .bind(edit.schema())
        .bind(edited.is_some())
        .bind(edited.and_then(|edited| edited.dedupe_key.clone()))
        .bind(edited.is_some_and(|edited| edited.dedupe_until_started))
        .bind(cache.as_ref().map(|cache| cache.key.clone()))
        .bind(cache.map(|cache| i64::try_from(cache.version).unwrap_or(i64::MAX)))
        .execute(&mut *conn)
        .await?;
    Ok(())
}

fn parsed(job_type: &str) -> Result<JobType, Fault> {
    job_type
        .parse()
        .map_err(|error| Fault::Row(format!("stored job_type {job_type:?}: {error}")))
}
