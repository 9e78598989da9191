//! Idempotency keys that a prune removes too early.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{Claimed, JobId, JobRecord, JobType, NewJob};
use queue_runtime::store::{ClaimRequest, Inserted, Pruned, Retention, Store};
use queue_runtime::time::Timestamp;

use super::disguise::{disguised, undisguise};
use super::twist::Twist;

type Key = (JobType, String);

/// Remembers when each key's window passes; a key that was forgotten goes on under another name.
#[derive(Default)]
pub(super) struct Forgotten {
    keys: Mutex<BTreeMap<Key, Remembered>>,
}

#[derive(Clone, Default)]
struct Remembered {
    /// How often the key was forgotten.
    times: u32,
    /// The job that it answers with, and when its window passes.
    answer: Option<(JobId, Timestamp)>,
}

impl Forgotten {
    fn keys(&self) -> MutexGuard<'_, BTreeMap<Key, Remembered>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Twist for Forgotten {
    async fn insert(
        &self,
        store: &dyn Store,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, StoreError> {
        let now = store.now().await?;
        let mut renamed = jobs.to_vec();
        for job in &mut renamed {
            if let Some(asked) = &mut job.idempotency {
                let key = (job.job_type.clone(), asked.key.clone());
                let times = self.keys().entry(key).or_default().times;
                if times > 0 {
                    asked.key = disguised(&asked.key, times);
                }
            }
        }
        let replies = store.insert(&renamed).await?;
        for (job, reply) in jobs.iter().zip(&replies) {
            let Some(asked) = &job.idempotency else {
                continue;
            };
            let answering = match reply {
                Inserted::New { id } => *id,
                Inserted::Duplicate { existing, .. } => *existing,
                Inserted::Conflict { .. } => continue,
            };
            let mut keys = self.keys();
            let key = (job.job_type.clone(), asked.key.clone());
            let answer = &mut keys.entry(key).or_default().answer;
            // A request that was answered before keeps its window.
            if answer.is_none_or(|(id, _)| id != answering) {
                *answer = Some((answering, now.saturating_add(asked.window)));
            }
        }
        Ok(replies)
    }

    async fn claim(
        &self,
        store: &dyn Store,
        request: &ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError> {
        let mut claimed = store.claim(request).await?;
        for run in &mut claimed {
            undisguise(&mut run.idempotency_key);
        }
        Ok(claimed)
    }

    async fn prune(
        &self,
        store: &dyn Store,
        retention: &Retention,
        limit: usize,
    ) -> Result<Pruned, StoreError> {
        let now = store.now().await?;
        let mut pruned = store.prune(retention, limit).await?;
        let keys = self.keys().clone();
        for (key, remembered) in keys {
            let passed = remembered.answer.filter(|(_, end)| *end <= now);
            let (Some((id, _)), true) = (passed, pruned.idempotency_keys < limit as u64) else {
                continue;
            };
            let live = |record: &JobRecord| !record.state.is_final();
            if store.job(id).await?.as_ref().is_some_and(live) {
                pruned.idempotency_keys += 1;
                let times = remembered.times + 1;
                let forgotten = Remembered {
                    times,
                    answer: None,
                };
                self.keys().insert(key, forgotten);
            }
        }
        Ok(pruned)
    }

    fn shown(&self, record: &mut JobRecord) {
        undisguise(&mut record.idempotency_key);
    }
}
