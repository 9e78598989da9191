//! Inserting: what the newcomer's keys meet is looked up, the rule decides, and that is written.

use super::state::{DedupeWindow, IdempotencyKey, Job, State};
use crate::job::{CacheKey, Dedupe, DedupeUntil, Idempotency, JobId, JobRecord, JobState, NewJob};
use crate::rules::dedupe::{Decision, Holder, Met, decide};
use crate::store::Inserted;
use crate::time::Timestamp;

impl State {
    pub(super) fn insert(&mut self, new: &NewJob, now: Timestamp) -> Inserted {
        if self.find(new.id).is_some() {
            return Inserted::New { id: new.id };
        }
        let met = self.met(new, now);
        let (answer, bind) = match decide(new.idempotency.as_ref(), new.dedupe.as_ref(), &met) {
            Decision::Conflict { existing, fields } => {
                return Inserted::Conflict { existing, fields };
            }
            Decision::Insert { slot } => (self.store(new, slot, now), true),
            Decision::Merge {
                holder,
                rewrite,
                bind,
            } => {
                if rewrite {
                    self.rewrite(holder.id, new, now);
                }
                let Holder {
                    id: existing,
                    state,
                    payload_differs,
                } = holder;
                (
                    Inserted::Duplicate {
                        existing,
                        state,
                        payload_differs,
                    },
                    bind,
                )
            }
        };
        self.raise_version(new.cache.as_ref());
        if let Some(asked) = new.idempotency.as_ref().filter(|_| bind) {
            self.bind_idempotency_key(new, asked, &answer, now);
        }
        answer
    }

    /// Looks up what the newcomer's keys meet; a request whose window has passed is forgotten.
    fn met(&mut self, new: &NewJob, now: Timestamp) -> Met {
        let mut met = Met::default();
        if let Some(asked) = &new.idempotency {
            let scoped = (new.job_type.clone(), asked.key.clone());
            let passed = |key: &IdempotencyKey| key.expires_at.is_some_and(|end| end <= now);
            if self.idempotency_keys.get(&scoped).is_some_and(passed) {
                self.idempotency_keys.remove(&scoped);
            }
            met.request = self.idempotency_keys.get(&scoped).map(|key| {
                (
                    self.holder(key.job, key.last_state, new),
                    key.fingerprint.clone(),
                )
            });
        }
        let Some(dedupe) = &new.dedupe else {
            return met;
        };
        let scoped = (new.job_type.clone(), dedupe.key.clone());
        if let DedupeUntil::Window(_) = dedupe.until {
            let window = self.dedupe_windows.get(&scoped);
            let window = window.filter(|window| window.expires_at > now);
            // Removed by retention within its window: it had ended, and well as far as we know.
            met.window = window.map(|window| self.holder(window.job, JobState::Done, new));
            return met;
        }
        met.slots = [0, 1].map(|slot| {
            self.slot(&scoped, slot)
                .map(|id| self.holder(id, JobState::Done, new))
        });
        met
    }

    fn holder(&self, id: JobId, if_gone: JobState, new: &NewJob) -> Holder {
        let record = self.find(id).map(|job| &job.record);
        Holder {
            id,
            state: record.map_or(if_gone, |record| record.state),
            payload_differs: record.is_some_and(|record| record.payload != new.payload),
        }
    }

    pub(super) fn raise_version(&mut self, cache: Option<&CacheKey>) {
        if let Some(cache) = cache {
            let newest = self
                .versions
                .entry(cache.key.clone())
                .or_insert(cache.version);
            *newest = cache.version.max(*newest);
        }
    }

    /// Gives a waiting job the newcomer's payload.
    fn rewrite(&mut self, id: JobId, new: &NewJob, now: Timestamp) {
        let Some(record) = self.live.get_mut(&id).map(|job| &mut job.record) else {
            return;
        };
        record.payload.clone_from(&new.payload);
        record.payload_schema = new.payload_schema;
        record.priority = new.priority;
        record.cache.clone_from(&new.cache);
        record.trace_context.clone_from(&new.trace_context);
        record.updated_at = now;
    }

    /// Stores the job. A key that is held for a window is held by the window and not by the job.
    fn store(&mut self, new: &NewJob, slot: u8, now: Timestamp) -> Inserted {
        let run_at = new.due.run_at(now);
        let mut dedupe = new.dedupe.as_ref();
        if let Some(Dedupe {
            key,
            until: DedupeUntil::Window(window),
            ..
        }) = dedupe
        {
            let expires_at = now.saturating_add(*window);
            let window = DedupeWindow {
                job: new.id,
                expires_at,
            };
            self.dedupe_windows
                .insert((new.job_type.clone(), key.clone()), window);
            dedupe = None;
        }
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
        self.claimable_news |= new.due.is_at_once(now) && slot == 0;
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
