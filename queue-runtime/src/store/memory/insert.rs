//! Inserting: versions first, then the idempotency key, then the dedupe key, then the job.

use super::state::{DedupeWindow, IdempotencyKey, Job, ScopedKey, State};
use crate::job::{
    Dedupe, DedupeUntil, Idempotency, JobId, JobRecord, JobState, NewJob, OnDuplicate,
};
use crate::rules::dedupe::{Placement, SlotHolder, differing_fields, place};
use crate::store::Inserted;
use crate::time::Timestamp;

impl State {
    pub(super) fn insert(&mut self, new: &NewJob, now: Timestamp) -> Inserted {
        if self.find(new.id).is_some() {
            return Inserted::New { id: new.id };
        }
        if let Some(asked) = &new.idempotency
            && let Some(answer) = self.answer_by_idempotency(new, asked, now)
        {
            if matches!(answer, Inserted::Duplicate { .. }) {
                self.raise_version(new);
            }
            return answer;
        }
        self.raise_version(new);
        let answer = match &new.dedupe {
            Some(Dedupe {
                key,
                until: DedupeUntil::Window(window),
                on_duplicate,
            }) => {
                let key = (new.job_type.clone(), key.clone());
                match self.answer_by_window(new, &key, *on_duplicate, now) {
                    Some(answer) => answer,
                    None => {
                        let expires_at = now.saturating_add(*window);
                        self.dedupe_windows.insert(
                            key,
                            DedupeWindow {
                                job: new.id,
                                expires_at,
                            },
                        );
                        self.store(new, None, 0, now)
                    }
                }
            }
            Some(dedupe) => self.place(new, dedupe, now),
            None => self.store(new, None, 0, now),
        };
        if let Some(asked) = &new.idempotency {
            self.bind_idempotency_key(new, asked, &answer, now);
        }
        answer
    }

    fn raise_version(&mut self, new: &NewJob) {
        if let Some(cache) = &new.cache {
            let newest = self
                .versions
                .entry(cache.key.clone())
                .or_insert(cache.version);
            *newest = cache.version.max(*newest);
        }
    }

    /// The remembered request answers while its job is unfinished or its window lasts.
    fn answer_by_idempotency(
        &mut self,
        new: &NewJob,
        asked: &Idempotency,
        now: Timestamp,
    ) -> Option<Inserted> {
        let scoped = (new.job_type.clone(), asked.key.clone());
        let key = self.idempotency_keys.get(&scoped)?;
        if key.expires_at.is_some_and(|end| end <= now) {
            self.idempotency_keys.remove(&scoped);
            return None;
        }
        if key.fingerprint != asked.fingerprint {
            let fields = differing_fields(key.fingerprint.as_str(), asked.fingerprint.as_str());
            return Some(Inserted::Conflict {
                existing: key.job,
                fields,
            });
        }
        let state = self
            .find(key.job)
            .map_or(key.last_state, |job| job.record.state);
        Some(Inserted::Duplicate {
            existing: key.job,
            state,
            payload_differs: false,
        })
    }

    fn answer_by_window(
        &mut self,
        new: &NewJob,
        key: &ScopedKey,
        mode: OnDuplicate,
        now: Timestamp,
    ) -> Option<Inserted> {
        let window = self
            .dedupe_windows
            .get(key)
            .filter(|window| window.expires_at > now)?;
        let id = window.job;
        let waits = self
            .live
            .get(&id)
            .is_some_and(|job| job.record.state == JobState::Queued);
        Some(self.answer(id, new, mode == OnDuplicate::Replace && waits, now))
    }

    fn place(&mut self, new: &NewJob, dedupe: &Dedupe, now: Timestamp) -> Inserted {
        let key = (new.job_type.clone(), dedupe.key.clone());
        let slots = [self.slot(&key, 0), self.slot(&key, 1)];
        let holder = slots[0]
            .and_then(|id| self.live.get(&id))
            .map(|job| match job.record.state {
                JobState::Processing => SlotHolder::Processing,
                _ => SlotHolder::Waiting,
            });
        match place(dedupe.on_duplicate, holder, slots[1].is_some()) {
            Placement::Insert { slot } => self.store(new, Some(dedupe), slot, now),
            Placement::Answer { slot, rewrite } => {
                let id = slots[usize::from(slot)].expect("the rule answers only with a taken slot");
                self.answer(id, new, rewrite, now)
            }
        }
    }

    /// Answers with an existing job, which takes over the newcomer's payload if `rewrite`.
    fn answer(&mut self, id: JobId, new: &NewJob, rewrite: bool, now: Timestamp) -> Inserted {
        let Some(job) = self
            .live
            .get_mut(&id)
            .or_else(|| self.finished.get_mut(&id))
        else {
            // Removed by retention within its window: it had ended, and well as far as we know.
            let state = JobState::Done;
            return Inserted::Duplicate {
                existing: id,
                state,
                payload_differs: false,
            };
        };
        let record = &mut job.record;
        let payload_differs = record.payload != new.payload;
        if rewrite {
            record.payload.clone_from(&new.payload);
            record.payload_schema = new.payload_schema;
            record.priority = new.priority;
            record.cache.clone_from(&new.cache);
            record.trace_context.clone_from(&new.trace_context);
            record.updated_at = now;
        }
        Inserted::Duplicate {
            existing: id,
            state: record.state,
            payload_differs,
        }
    }

    fn store(
        &mut self,
        new: &NewJob,
        dedupe: Option<&Dedupe>,
        slot: u8,
        now: Timestamp,
    ) -> Inserted {
        let run_at = new.due.run_at(now);
        let record = JobRecord {
            id: new.id,
            job_type: new.job_type.clone(),
            queue: new.queue.clone(),
            payload: new.payload.clone(),
            payload_schema: new.payload_schema,
            state: JobState::Queued,
            priority: new.priority,
            attempts: 0,
            max_attempts: new.max_attempts,
            crashes: 0,
            snoozes: 0,
            generation: 0,
            run_at,
            cancel_requested_at: None,
            locked_until: None,
            locked_by: None,
            lock_token: None,
            dedupe_key: dedupe.map(|dedupe| dedupe.key.clone()),
            dedupe_slot: slot,
            idempotency_key: new.idempotency.as_ref().map(|asked| asked.key.clone()),
            cache: new.cache.clone(),
            deadline: new.deadline.map(|deadline| now.saturating_add(deadline)),
            last_outcome: None,
            dead_reason: None,
            last_error: None,
            trace_context: new.trace_context.clone(),
            created_at: now,
            updated_at: now,
            started_at: None,
            finished_at: None,
        };
        let dedupe_until = dedupe.map_or(DedupeUntil::Finished, |dedupe| dedupe.until);
        self.live.insert(
            new.id,
            Job {
                record,
                dedupe_until,
            },
        );
        self.claimable_news |= run_at <= now && slot == 0;
        Inserted::New { id: new.id }
    }

    /// Remembers the request for the job that answers it, which may be one that existed before.
    fn bind_idempotency_key(
        &mut self,
        new: &NewJob,
        asked: &Idempotency,
        answer: &Inserted,
        now: Timestamp,
    ) {
        let (job, state) = match answer {
            Inserted::New { id } => (*id, JobState::Queued),
            Inserted::Duplicate {
                existing, state, ..
            } => (*existing, *state),
            Inserted::Conflict { .. } => return,
        };
        let window_end = now.saturating_add(asked.window);
        let key = IdempotencyKey {
            fingerprint: asked.fingerprint.clone(),
            job,
            created_at: now,
            window: asked.window,
            expires_at: state.is_final().then_some(window_end),
            last_state: state,
        };
        self.idempotency_keys
            .insert((new.job_type.clone(), asked.key.clone()), key);
    }
}
