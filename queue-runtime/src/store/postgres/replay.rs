//! Lets a dead letter or a cancelled job run again, with its own payload or another.

use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::actions::{Inside, find};
use super::connect::Work;
use super::error::Fault;
use super::rows;
use super::statements::Statements;
use crate::job::{CacheKey, JobId, JobState, JobType};
use crate::store::{Edit, Replaying};

/// Replays a job. What is found first may change meanwhile: then the later statements meet no row,
/// or the key's index refuses, and all is decided anew.
pub(super) struct Replay<'a> {
    pub(super) inside: Inside<'a>,
    pub(super) id: JobId,
    pub(super) as_new: bool,
    pub(super) edit: Option<&'a Edit>,
}

impl Work for Replay<'_> {
    type Done = Replaying;

    async fn run(&self, conn: &mut PgConnection) -> Result<Replaying, Fault> {
        let Inside { statements, now } = self.inside;
        let Some(job) = find(conn, statements, self.id).await? else {
            return Ok(Replaying::NotFound);
        };
        if !matches!(job.state, JobState::DeadLetter | JobState::Cancelled) {
            return Ok(Replaying::NotReplayable(job.state));
        }
        if self.edit.is_some_and(|edit| !edit.is_for(&job.job_type)) {
            return Ok(Replaying::OtherType(parsed(&job.job_type)?));
        }
        let key = match self.edit.and_then(Edit::job) {
            Some(edited) => edited.dedupe_key.clone(),
            None => job.dedupe_key,
        };
        if let Some(key) = key {
            let holder = statements
                .replay_holder
                .query()
                .bind(job.job_type)
                .bind(key)
                .fetch_optional(&mut *conn)
                .await?;
            if let Some(row) = holder {
                return Ok(Replaying::Duplicate(rows::id(&row)?));
            }
        }
        if let Some(edit) = self.edit {
            // As an insert does, versions before keys: two that meet never wait for each other.
            if let Some(cache) = edit.job().and_then(|edited| edited.cache.as_ref()) {
                announce(conn, statements, cache).await?;
            }
            put_in_place(conn, statements, self.id, edit).await?;
        }
        let moved = statements
            .replay
            .query()
            .bind(*self.id.as_uuid())
            .bind(now)
            .bind(i64::from(self.as_new))
            .fetch_optional(&mut *conn)
            .await?;
        if moved.is_none() {
            // Somebody else has replayed or pruned it since we looked.
            return Err(Fault::Lost);
        }
        statements
            .replay_keys
            .query()
            .bind(*self.id.as_uuid())
            .execute(&mut *conn)
            .await?;
        Ok(Replaying::Replayed)
    }
}

/// Raises the version of the cached thing that the job refreshes from now on.
async fn announce(
    conn: &mut PgConnection,
    statements: &Statements,
    cache: &CacheKey,
) -> Result<(), Fault> {
    statements
        .insert_version
        .query()
        .bind(vec![cache.key.clone()])
        .bind(vec![stored(cache.version)])
        .bind(vec![None::<Uuid>])
        .execute(&mut *conn)
        .await?;
    Ok(())
}

async fn put_in_place(
    conn: &mut PgConnection,
    statements: &Statements,
    id: JobId,
    edit: &Edit,
) -> Result<(), Fault> {
    let edited = edit.job();
    let cache = edited.and_then(|edited| edited.cache.as_ref());
    let changed = statements
        .replay_edit
        .query()
        .bind(*id.as_uuid())
        .bind(edit.payload().to_owned())
        .bind(i64::from(edit.schema()))
        .bind(edited.is_some())
        .bind(edited.and_then(|edited| edited.dedupe_key.clone()))
        .bind(edited.is_some_and(|edited| edited.dedupe_until_started))
        .bind(cache.map(|cache| cache.key.clone()))
        .bind(cache.map(|cache| stored(cache.version)))
        .execute(&mut *conn)
        .await?;
    match changed.rows_affected() {
        0 => Err(Fault::Lost),
        _ => Ok(()),
    }
}

/// A version as it is stored; the rules keep versions within 63 bits.
fn stored(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

fn parsed(job_type: &str) -> Result<JobType, Fault> {
    job_type
        .parse()
        .map_err(|error| Fault::Row(format!("stored job_type {job_type:?}: {error}")))
}
