//! Claiming, renewing, settling: the writes that make and end attempts.

use std::cmp::Reverse;
use std::time::Duration;

use super::state::State;
use crate::job::{
    Attempt, Change, Claimed, DedupeUntil, JobId, JobRecord, JobState, Lease, LeaseToken, Settled,
    Settlement,
};
use crate::store::{ClaimRequest, Extended};
use crate::time::Timestamp;

impl State {
    pub(super) fn claim(&mut self, request: &ClaimRequest, now: Timestamp) -> Vec<Claimed> {
        let mut due: Vec<_> = self
            .live
            .values()
            .map(|job| &job.record)
            .filter(|job| job.run_at <= now)
            .filter_map(|job| Some((queue_position(job, request)?, job)))
            .map(|(queue, job)| ((queue, Reverse(job.priority), job.run_at, job.id), job.id))
            .collect();
        due.sort();
        let mut suspects = 0;
        due.into_iter()
            .filter(|(_, id)| {
                let crashes = self.live.get(id).map_or(0, |job| job.record.crashes);
                suspects += usize::from(crashes >= request.suspects.crashes);
                crashes < request.suspects.crashes || suspects <= request.suspects.limit
            })
            .map(|(_, id)| id)
            .take(request.limit)
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| self.start_attempt(id, request, now))
            .collect()
    }

    fn start_attempt(&mut self, id: JobId, request: &ClaimRequest, now: Timestamp) -> Claimed {
        self.newest_token += 1;
        let token = LeaseToken::new(self.newest_token);
        let locked_until = now.saturating_add(request.lease);
        let job = self.live.get_mut(&id).expect("only live jobs are due");
        let record = &mut job.record;
        record.state = JobState::Processing;
        record.attempts += 1;
        record.lock_token = Some(token);
        record.locked_until = Some(locked_until);
        record.locked_by = Some(request.worker.clone());
        record.started_at = Some(now);
        record.updated_at = now;
        if job.dedupe_until == DedupeUntil::Started {
            record.dedupe_key = None;
        }
        let attempt = Attempt {
            token,
            number: record.attempts,
            worker: request.worker.clone(),
            started_at: now,
            finished_at: None,
            outcome: None,
            error: None,
        };
        self.attempts.insert(token, (id, attempt));
        claimed(record, token, locked_until, now)
    }

    pub(super) fn extend(&mut self, held: &Lease, lease: Duration, now: Timestamp) -> Extended {
        let Some(record) = self.held(held) else {
            return Extended::Lost;
        };
        record.locked_until = Some(now.saturating_add(lease));
        record.updated_at = now;
        match record.cancel_requested_at {
            Some(_) => Extended::Cancel,
            None => Extended::Kept,
        }
    }

    pub(super) fn settle(&mut self, settlement: &Settlement, now: Timestamp) -> Settled {
        let Some(record) = self.held(&settlement.lease()) else {
            return Settled::Stale;
        };
        if settlement.only_if_expired && record.locked_until.is_some_and(|end| end > now) {
            return Settled::Stale;
        }
        record.attempts = settlement.attempts;
        record.crashes = settlement.crashes;
        record.snoozes = settlement.snoozes;
        record.last_outcome = Some(settlement.outcome);
        if let Some(error) = &settlement.error {
            record.last_error = Some(error.clone());
        }
        record.locked_until = None;
        record.locked_by = None;
        record.updated_at = now;
        let state = match settlement.change {
            Change::Queued { .. } if record.cancel_requested_at.is_some() => JobState::Cancelled,
            Change::Queued { delay } => {
                record.state = JobState::Queued;
                record.run_at = now.saturating_add(delay);
                self.claimable_news |= delay.is_zero();
                JobState::Queued
            }
            Change::DeadLetter { reason } => {
                record.dead_reason = Some(reason);
                JobState::DeadLetter
            }
            Change::Done => JobState::Done,
            Change::Cancelled => JobState::Cancelled,
        };
        if let Some((_, attempt)) = self.attempts.get_mut(&settlement.token) {
            attempt.finished_at = Some(now);
            attempt.outcome = Some(settlement.outcome);
            attempt.error.clone_from(&settlement.error);
        }
        if state.is_final() {
            self.finish(settlement.id, state, now);
        }
        Settled::Applied(state)
    }

    pub(super) fn expired(&self, limit: usize, now: Timestamp) -> Vec<JobRecord> {
        let mut expired: Vec<_> = self
            .live
            .values()
            .map(|job| &job.record)
            .filter(|job| job.state == JobState::Processing)
            .filter(|job| job.locked_until.is_some_and(|end| end <= now))
            .collect();
        expired.sort_by_key(|job| (job.locked_until, job.id));
        expired.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn next_due(&self, request: &ClaimRequest, now: Timestamp) -> Option<Duration> {
        self.live
            .values()
            .map(|job| &job.record)
            .filter(|job| queue_position(job, request).is_some())
            .filter(|job| job.crashes < request.suspects.crashes || request.suspects.limit > 0)
            .map(|job| job.run_at.since(now))
            .min()
    }

    /// Finds the running job of a lease while its token is the current one, whether or not it
    /// has run out.
    fn held(&mut self, lease: &Lease) -> Option<&mut JobRecord> {
        self.live
            .get_mut(&lease.id)
            .map(|job| &mut job.record)
            .filter(|job| job.state == JobState::Processing && job.lock_token == Some(lease.token))
    }
}

/// Returns the position of the job's queue in the request if the job could be claimed for it,
/// but for its time.
fn queue_position(job: &JobRecord, request: &ClaimRequest) -> Option<usize> {
    let readable =
        |(job_type, schema): &(_, u32)| *job_type == job.job_type && job.payload_schema <= *schema;
    if job.state != JobState::Queued
        || job.dedupe_slot != 0
        || !request.job_types.iter().any(readable)
    {
        return None;
    }
    request.queues.iter().position(|queue| *queue == job.queue)
}

fn claimed(
    record: &JobRecord,
    token: LeaseToken,
    locked_until: Timestamp,
    now: Timestamp,
) -> Claimed {
    Claimed {
        id: record.id,
        job_type: record.job_type.clone(),
        queue: record.queue.clone(),
        payload: record.payload.clone(),
        payload_schema: record.payload_schema,
        attempt: record.attempts,
        max_attempts: record.max_attempts,
        crashes: record.crashes,
        snoozes: record.snoozes,
        generation: record.generation,
        token,
        locked_until,
        claimed_at: now,
        run_at: record.run_at,
        created_at: record.created_at,
        deadline: record.deadline,
        cancel_requested: record.cancel_requested_at.is_some(),
        idempotency_key: record.idempotency_key.clone(),
        cache: record.cache.clone(),
        trace_context: record.trace_context.clone(),
    }
}
