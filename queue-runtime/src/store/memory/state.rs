//! What the memory store holds, and how its parts are found.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::{
    Attempt, DedupeUntil, Fingerprint, JobId, JobRecord, JobState, JobType, LeaseToken,
};
use crate::time::Timestamp;

/// Everything, under one lock.
#[derive(Default)]
pub(super) struct State {
    /// Queued and processing jobs.
    pub(super) live: BTreeMap<JobId, Job>,
    /// Jobs in a final state.
    pub(super) finished: BTreeMap<JobId, Job>,
    /// Attempt history, in claim order.
    pub(super) attempts: BTreeMap<LeaseToken, (JobId, Attempt)>,
    /// Idempotency keys, scoped by job type.
    pub(super) idempotency_keys: BTreeMap<ScopedKey, IdempotencyKey>,
    /// Dedupe keys that are held for a window.
    pub(super) dedupe_windows: BTreeMap<ScopedKey, DedupeWindow>,
    /// The newest version of each cache key.
    pub(super) versions: BTreeMap<String, u64>,
    /// The newest lease token.
    pub(super) newest_token: i64,
    /// Whether the running step made a job claimable.
    pub(super) claimable_news: bool,
    /// Whether the store was closed.
    pub(super) closed: bool,
}

/// A key within its scope, the job type.
pub(super) type ScopedKey = (JobType, String);

/// A stored job, and how long it holds its dedupe key.
pub(super) struct Job {
    pub(super) record: JobRecord,
    pub(super) dedupe_until: DedupeUntil,
}

/// A remembered request.
pub(super) struct IdempotencyKey {
    pub(super) fingerprint: Fingerprint,
    pub(super) job: JobId,
    pub(super) created_at: Timestamp,
    pub(super) window: Duration,
    /// When the key stops answering; `None` while its job is unfinished.
    pub(super) expires_at: Option<Timestamp>,
    /// Where its job ended, for when retention has removed it.
    pub(super) last_state: JobState,
}

/// A dedupe key held for a time, whatever becomes of its job.
pub(super) struct DedupeWindow {
    pub(super) job: JobId,
    pub(super) expires_at: Timestamp,
}

impl State {
    /// Finds a job in any state.
    pub(super) fn find(&self, id: JobId) -> Option<&Job> {
        self.live.get(&id).or_else(|| self.finished.get(&id))
    }

    /// Finds the live job in a slot of a dedupe key.
    pub(super) fn slot(&self, key: &ScopedKey, slot: u8) -> Option<JobId> {
        self.live
            .values()
            .map(|job| &job.record)
            .find(|job| {
                job.job_type == key.0
                    && job.dedupe_key.as_ref() == Some(&key.1)
                    && job.dedupe_slot == slot
            })
            .map(|job| job.id)
    }

    /// Makes a live job final: moves it, closes its idempotency keys, and lets the job waiting
    /// behind its dedupe key become the live one.
    pub(super) fn finish(&mut self, id: JobId, state: JobState, now: Timestamp) {
        let Some(mut job) = self.live.remove(&id) else {
            return;
        };
        let record = &mut job.record;
        record.state = state;
        record.locked_until = None;
        record.locked_by = None;
        record.finished_at = Some(now);
        record.updated_at = now;
        for key in self
            .idempotency_keys
            .values_mut()
            .filter(|key| key.job == id)
        {
            key.expires_at = Some(key.created_at.saturating_add(key.window).max(now));
            key.last_state = state;
        }
        if let (Some(key), 0) = (&record.dedupe_key, record.dedupe_slot) {
            let waiting = self.slot(&(record.job_type.clone(), key.clone()), 1);
            if let Some(waiting) = waiting.and_then(|id| self.live.get_mut(&id)) {
                waiting.record.dedupe_slot = 0;
                waiting.record.updated_at = now;
                self.claimable_news = true;
            }
        }
        self.finished.insert(id, job);
    }
}
