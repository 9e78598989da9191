//! Dedupe by looking first and storing afterwards.
//!
//! The store behind sees every key that was found free under a name of its own, so nothing there
//! refuses a second one. As long as callers come one after the other, all answers are right.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{DedupeUntil, JobId, JobRecord, JobState, JobType, NewJob};
use queue_runtime::store::{Edit, EditedJob, Inserted, Replaying, Store};

use super::disguise::{disguised, undisguise};
use super::twist::Twist;

type Key = (JobType, String);

/// Remembers under which names a key was stored, and for which jobs.
#[derive(Default)]
pub(super) struct CheckThenInsert {
    names: Mutex<Names>,
}

type Names = BTreeMap<Key, BTreeMap<String, Vec<JobId>>>;

impl CheckThenInsert {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for a live job that holds the key: its name there, and the job in slot 0.
    async fn holder(
        &self,
        store: &dyn Store,
        key: &Key,
    ) -> Result<Option<(String, JobId)>, StoreError> {
        let names = self.names().get(key).cloned().unwrap_or_default();
        for (name, jobs) in names {
            let mut holders = Vec::new();
            for id in jobs {
                let found = store.job(id).await?.filter(holds);
                holders.extend(found.map(|record| (record.dedupe_slot, id)));
            }
            if let Some((_, first)) = holders.into_iter().min() {
                return Ok(Some((name, first)));
            }
        }
        Ok(None)
    }
}

fn is_replayable(record: &JobRecord) -> bool {
    matches!(record.state, JobState::DeadLetter | JobState::Cancelled)
}

fn holds(record: &JobRecord) -> bool {
    !record.state.is_final() && record.dedupe_key.is_some()
}

#[async_trait]
impl Twist for CheckThenInsert {
    async fn insert(
        &self,
        store: &dyn Store,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, StoreError> {
        let mut renamed = jobs.to_vec();
        let mut of_this_batch = BTreeMap::<Key, String>::new();
        for job in &mut renamed {
            let Some(dedupe) = &mut job.dedupe else {
                continue;
            };
            if let DedupeUntil::Window(_) = dedupe.until {
                continue;
            }
            let key = (job.job_type.clone(), dedupe.key.clone());
            let found = self.holder(store, &key).await?;
            let name = of_this_batch
                .entry(key)
                .or_insert_with(|| match found {
                    Some((name, _)) => name,
                    None => disguised(&dedupe.key, job.id),
                })
                .clone();
            dedupe.key = name;
        }
        // Here another caller comes in between.
        tokio::task::yield_now().await;
        let replies = store.insert(&renamed).await?;
        for (job, (given, reply)) in renamed.iter().zip(jobs.iter().zip(&replies)) {
            if let (Some(dedupe), Some(as_given)) = (&job.dedupe, &given.dedupe)
                && let Inserted::New { id } = reply
            {
                let key = (job.job_type.clone(), as_given.key.clone());
                let mut names = self.names();
                let of_key = names.entry(key).or_default();
                of_key.entry(dedupe.key.clone()).or_default().push(*id);
            }
        }
        Ok(replies)
    }

    async fn replay(
        &self,
        store: &dyn Store,
        id: JobId,
        as_new: bool,
    ) -> Result<Replaying, StoreError> {
        if let Some(mut record) = store.job(id).await?.filter(is_replayable) {
            undisguise(&mut record.dedupe_key);
            if let Some(key) = record.dedupe_key
                && let Some((_, holder)) = self.holder(store, &(record.job_type, key)).await?
            {
                return Ok(Replaying::Duplicate(holder));
            }
        }
        store.replay(id, as_new).await
    }

    async fn replay_with(
        &self,
        store: &dyn Store,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        let found = store.job(id).await?.filter(is_replayable);
        let Some(mut record) = found.filter(|record| edit.is_for(record.job_type.as_str())) else {
            return store.replay_with(id, as_new, edit).await;
        };
        undisguise(&mut record.dedupe_key);
        let key = match edit.job() {
            Some(edited) => edited.dedupe_key.clone(),
            None => record.dedupe_key,
        };
        let Some(key) = key.map(|key| (record.job_type, key)) else {
            return store.replay_with(id, as_new, edit).await;
        };
        if let Some((_, holder)) = self.holder(store, &key).await? {
            return Ok(Replaying::Duplicate(holder));
        }
        let Some(edited) = edit.job() else {
            return store.replay_with(id, as_new, edit).await;
        };
        let name = disguised(&key.1, format!("edit of {id}"));
        let renamed = edit.clone().of_job(EditedJob {
            dedupe_key: Some(name.clone()),
            ..edited.clone()
        });
        let answer = store.replay_with(id, as_new, &renamed).await?;
        if answer == Replaying::Replayed {
            let mut names = self.names();
            names
                .entry(key)
                .or_default()
                .entry(name)
                .or_default()
                .push(id);
        }
        Ok(answer)
    }

    fn shown(&self, record: &mut JobRecord) {
        undisguise(&mut record.dedupe_key);
    }
}
