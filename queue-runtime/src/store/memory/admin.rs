//! Looking, calling off, replaying, counting, pruning.

use super::state::{Job, ScopedKey, State};
use crate::job::{Attempt, DedupeUntil, JobId, JobRecord, JobState, OutcomeKind};
use crate::store::{Cancelling, Counts, Edit, Pruned, Replaying, Retention};
use crate::time::Timestamp;

impl State {
    pub(super) fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        limit: usize,
    ) -> Vec<JobRecord> {
        let place = |job: &JobRecord| Some((job.finished_at?, job.id));
        let mut jobs: Vec<_> = self
            .finished
            .values()
            .map(|job| &job.record)
            .filter(|job| job.state == state)
            .filter(|job| before.is_none() || place(job) < before)
            .collect();
        jobs.sort_by_key(|job| std::cmp::Reverse(place(job)));
        jobs.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn attempts_of(&self, id: JobId) -> Vec<Attempt> {
        self.attempts
            .values()
            .filter(|(job, _)| *job == id)
            .map(|(_, attempt)| attempt.clone())
            .collect()
    }

    pub(super) fn cancel(&mut self, id: JobId, now: Timestamp) -> Cancelling {
        let Some(job) = self.live.get_mut(&id) else {
            return match self.finished.get(&id) {
                Some(job) => Cancelling::AlreadyFinal(job.record.state),
                None => Cancelling::NotFound,
            };
        };
        if job.record.state == JobState::Processing {
            job.record.cancel_requested_at.get_or_insert(now);
            job.record.updated_at = now;
            return Cancelling::Requested;
        }
        job.record.last_outcome = Some(OutcomeKind::Cancelled);
        self.finish(id, JobState::Cancelled, now);
        Cancelling::Cancelled
    }

    pub(super) fn replay(
        &mut self,
        id: JobId,
        as_new: bool,
        edit: Option<&Edit>,
        now: Timestamp,
    ) -> Replaying {
        let Some(job) = self.finished.get(&id) else {
            return match self.live.get(&id) {
                Some(job) => Replaying::NotReplayable(job.record.state),
                None => Replaying::NotFound,
            };
        };
        if !matches!(job.record.state, JobState::DeadLetter | JobState::Cancelled) {
            return Replaying::NotReplayable(job.record.state);
        }
        let job_type = job.record.job_type.clone();
        if edit.is_some_and(|edit| !edit.is_for(job_type.as_str())) {
            return Replaying::OtherType(job_type);
        }
        let key = match edit.and_then(Edit::job) {
            Some(edited) => &edited.dedupe_key,
            None => &job.record.dedupe_key,
        };
        if let Some(key) = key
            && let Some(live) = self.slot(&(job_type, key.clone()), 0)
        {
            return Replaying::Duplicate(live);
        }
        let mut job = self.finished.remove(&id).expect("it was found above");
        if let Some(edit) = edit {
            self.edit(&mut job, edit);
        }
        let record = &mut job.record;
        record.state = JobState::Queued;
        record.dedupe_slot = 0;
        record.attempts = 0;
        record.crashes = 0;
        record.snoozes = 0;
        record.generation += u32::from(as_new);
        record.run_at = now;
        record.cancel_requested_at = None;
        record.deadline = None;
        record.dead_reason = None;
        record.finished_at = None;
        record.updated_at = now;
        for key in self
            .idempotency_keys
            .values_mut()
            .filter(|key| key.job == id)
        {
            key.expires_at = None;
        }
        self.live.insert(id, job);
        self.claimable_news = true;
        Replaying::Replayed
    }

    fn edit(&mut self, job: &mut Job, edit: &Edit) {
        edit.payload().clone_into(&mut job.record.payload);
        job.record.payload_schema = edit.schema();
        let Some(edited) = edit.job() else { return };
        job.record.dedupe_key.clone_from(&edited.dedupe_key);
        job.dedupe_until = match edited.dedupe_until_started {
            true => DedupeUntil::Started,
            false => DedupeUntil::Finished,
        };
        job.record.cache.clone_from(&edited.cache);
        self.raise_version(edited.cache.as_ref());
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for job in self.live.values().chain(self.finished.values()) {
            *counts.of_mut(job.record.state) += 1;
        }
        counts
    }

    pub(super) fn prune(&mut self, retention: &Retention, limit: usize, now: Timestamp) -> Pruned {
        let mut old: Vec<_> = self
            .finished
            .values()
            .filter_map(|job| {
                let finished_at = job.record.finished_at?;
                let kept = retention.of(job.record.state)?;
                (finished_at.saturating_add(kept) <= now).then_some((finished_at, job.record.id))
            })
            .collect();
        old.sort();
        old.truncate(limit);
        for (_, id) in &old {
            self.finished.remove(id);
            self.attempts.retain(|_, (job, _)| job != id);
        }
        let ends = self
            .idempotency_keys
            .iter()
            .filter_map(|(scoped, key)| Some((key.expires_at?, scoped.clone())));
        let keys = passed(ends, limit, now);
        for scoped in &keys {
            self.idempotency_keys.remove(scoped);
        }
        let ends = self
            .dedupe_windows
            .iter()
            .map(|(scoped, window)| (window.expires_at, scoped.clone()));
        let windows = passed(ends, limit, now);
        for scoped in &windows {
            self.dedupe_windows.remove(scoped);
        }
        Pruned {
            jobs: old.len() as u64,
            idempotency_keys: keys.len() as u64,
            dedupe_windows: windows.len() as u64,
        }
    }
}

/// Chooses at most `limit` keys whose time has passed, oldest first.
fn passed(
    ends: impl Iterator<Item = (Timestamp, ScopedKey)>,
    limit: usize,
    now: Timestamp,
) -> Vec<ScopedKey> {
    let mut ends: Vec<_> = ends.filter(|(end, _)| *end <= now).collect();
    ends.sort();
    ends.into_iter().take(limit).map(|(_, key)| key).collect()
}
