//! Everything that a store shows of its jobs at one moment, to compare whole.
//!
//! A case takes a [`Picture`], writes into it what the verb under test should change, runs the
//! verb, and compares. So every case also proves what did *not* happen: to other jobs, to other
//! fields, to the history, to the counts.

use std::collections::{BTreeMap, BTreeSet};

use queue_runtime::job::{
    Attempt, Change, Claimed, JobId, JobRecord, JobState, LeaseToken, NewJob, Settlement, WorkerId,
};
use queue_runtime::store::{Counts, Store};
use queue_runtime::time::Timestamp;

/// What a store shows of a set of jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    jobs: BTreeMap<JobId, Seen>,
    counts: Counts,
}

/// One job with its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The job.
    pub record: JobRecord,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

impl Picture {
    /// Looks at those of `ids` that the store knows.
    ///
    /// # Panics
    /// If the store fails.
    pub async fn of(store: &dyn Store, ids: &[JobId]) -> Self {
        let mut picture = Self::default();
        for &id in ids {
            let attempts = store.attempts(id).await.expect("attempts answers");
            match store.job(id).await.expect("job answers") {
                Some(record) => drop(picture.jobs.insert(id, Seen { record, attempts })),
                None => assert_eq!(attempts, [], "job {id} is unknown and has attempts"),
            }
        }
        picture.counts = store.counts().await.expect("counts answers");
        picture
    }

    /// Returns the jobs by id.
    pub fn jobs(&self) -> &BTreeMap<JobId, Seen> {
        &self.jobs
    }

    /// Returns the picture with every lease token told as another, such as the one that another
    /// store gave to the same claim.
    #[must_use]
    pub fn with_tokens(mut self, mut told: impl FnMut(LeaseToken) -> LeaseToken) -> Self {
        for seen in self.jobs.values_mut() {
            seen.record.lock_token = seen.record.lock_token.map(&mut told);
            for attempt in &mut seen.attempts {
                attempt.token = told(attempt.token);
            }
        }
        self
    }

    /// Returns a job that is in the picture, to change it.
    ///
    /// # Panics
    /// If it is not.
    pub fn job(&mut self, id: JobId) -> &mut JobRecord {
        &mut self.seen(id).record
    }

    /// Returns the newest attempt of a job in the picture, to change it.
    ///
    /// # Panics
    /// If the job is not in the picture or has no attempt.
    pub fn attempt(&mut self, id: JobId) -> &mut Attempt {
        self.seen(id)
            .attempts
            .last_mut()
            .expect("the job was claimed before")
    }

    fn seen(&mut self, id: JobId) -> &mut Seen {
        self.jobs
            .get_mut(&id)
            .unwrap_or_else(|| panic!("job {id} is in the picture"))
    }

    /// Takes a job out, as a prune does.
    pub fn removed(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    /// Puts in a job as an insert at `now` stores it.
    pub fn inserted(&mut self, job: &NewJob, now: Timestamp) -> &mut JobRecord {
        let record = fresh(job, now);
        self.jobs.insert(
            job.id,
            Seen {
                record,
                attempts: Vec::new(),
            },
        );
        self.job(job.id)
    }

    /// Changes a job as its claim does.
    pub fn claimed(&mut self, claimed: &Claimed, worker: &WorkerId) -> &mut JobRecord {
        let seen = self.seen(claimed.id);
        seen.attempts.push(Attempt {
            token: claimed.token,
            number: claimed.attempt,
            worker: worker.clone(),
            started_at: claimed.claimed_at,
            finished_at: None,
            outcome: None,
            error: None,
        });
        let record = &mut seen.record;
        record.state = JobState::Processing;
        record.attempts += 1;
        record.lock_token = Some(claimed.token);
        record.locked_until = Some(claimed.locked_until);
        record.locked_by = Some(worker.clone());
        record.started_at = Some(claimed.claimed_at);
        record.updated_at = claimed.claimed_at;
        record
    }

    /// Changes a final job as a replay at `now` does.
    pub fn replayed(&mut self, id: JobId, now: Timestamp) -> &mut JobRecord {
        let record = self.job(id);
        record.state = JobState::Queued;
        record.attempts = 0;
        record.crashes = 0;
        record.snoozes = 0;
        record.run_at = now;
        record.updated_at = now;
        record.dedupe_slot = 0;
        record.cancel_requested_at = None;
        record.deadline = None;
        record.dead_reason = None;
        record.finished_at = None;
        record
    }

    /// Changes a job as a settlement applied at `now` does, while nobody asked for a cancel.
    pub fn settled(&mut self, settlement: &Settlement, now: Timestamp) -> &mut JobRecord {
        let attempt = self.attempt(settlement.id);
        attempt.finished_at = Some(now);
        attempt.outcome = Some(settlement.outcome);
        attempt.error.clone_from(&settlement.error);

        let record = self.job(settlement.id);
        record.state = settlement.change.state();
        record.attempts = settlement.attempts;
        record.crashes = settlement.crashes;
        record.snoozes = settlement.snoozes;
        record.last_outcome = Some(settlement.outcome);
        if settlement.error.is_some() {
            record.last_error.clone_from(&settlement.error);
        }
        record.locked_until = None;
        record.locked_by = None;
        record.updated_at = now;
        match settlement.change {
            Change::Queued { delay } => record.run_at = now.saturating_add(delay),
            Change::DeadLetter { reason } => record.dead_reason = Some(reason),
            Change::Done | Change::Cancelled => {}
        }
        record.finished_at = record.state.is_final().then_some(now);
        record
    }

    /// Names every place in which another picture differs, with both values.
    pub fn differences(&self, actual: &Self) -> Vec<String> {
        let (expected, actual) = (self.lines(), actual.lines());
        let places: BTreeSet<_> = expected.keys().chain(actual.keys()).collect();
        let absent = "absent".to_owned();
        places
            .into_iter()
            .map(|place| {
                let side = |lines: &BTreeMap<String, String>| lines.get(place).cloned();
                let expected = side(&expected).unwrap_or_else(|| absent.clone());
                (
                    place,
                    expected,
                    side(&actual).unwrap_or_else(|| absent.clone()),
                )
            })
            .filter(|(_, expected, actual)| expected != actual)
            .map(|(place, expected, actual)| {
                let (expected, actual) = (shorten(&expected), shorten(&actual));
                format!("  {place}\n    expected {expected}\n    found    {actual}")
            })
            .collect()
    }

    fn lines(&self) -> BTreeMap<String, String> {
        let mut lines = BTreeMap::new();
        for (id, seen) in &self.jobs {
            for (field, value) in fields(&seen.record) {
                lines.insert(format!("job {id}: {field}"), value);
            }
            for (index, attempt) in seen.attempts.iter().enumerate() {
                lines.insert(
                    format!("job {id}: attempt row {index}"),
                    format!("{attempt:?}"),
                );
            }
        }
        lines
    }

    /// Names the rules that hold at every moment and that this picture breaks.
    ///
    /// Expects every job of the store to be in the picture.
    pub fn broken_rules(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut tally = Counts::default();
        let mut slots: BTreeMap<(String, String, u8), Vec<JobId>> = BTreeMap::new();
        let mut tokens = BTreeMap::new();
        for (&id, seen) in &self.jobs {
            let record = &seen.record;
            *tally.of_mut(record.state) += 1;
            let mut hold = |rule: &str, holds: bool| {
                if !holds {
                    broken.push(format!(
                        "\"{rule}\" for {record:?} with {:?}",
                        seen.attempts
                    ));
                }
            };
            let running = record.state == JobState::Processing;
            hold(
                "a lease only while processing",
                running == record.locked_until.is_some(),
            );
            hold(
                "a holder only while processing",
                running == record.locked_by.is_some(),
            );
            hold("finished_at only when final", {
                record.state.is_final() == record.finished_at.is_some()
            });
            hold("a reason only for a dead letter", {
                (record.state == JobState::DeadLetter) == record.dead_reason.is_some()
            });
            hold(
                "attempts within their bound",
                record.attempts <= record.max_attempts,
            );
            hold("an open attempt only while processing", {
                let open = seen
                    .attempts
                    .iter()
                    .filter(|attempt| attempt.finished_at.is_none());
                open.count() == usize::from(running)
            });
            hold("history ends with the newest token", {
                seen.attempts.last().map(|attempt| attempt.token) == record.lock_token
            });
            hold("tokens rise", {
                seen.attempts
                    .is_sorted_by(|older, newer| older.token < newer.token)
            });
            hold("a token belongs to one attempt", {
                seen.attempts
                    .iter()
                    .all(|attempt| tokens.insert(attempt.token, id).is_none())
            });
            if let (Some(key), false) = (&record.dedupe_key, record.state.is_final()) {
                let slot = (record.job_type.to_string(), key.clone(), record.dedupe_slot);
                slots.entry(slot).or_default().push(id);
                hold("a key has slots 0 and 1", record.dedupe_slot <= 1);
                hold("only slot 0 runs", !running || record.dedupe_slot == 0);
            }
        }
        for ((job_type, key, slot), holders) in &slots {
            if holders.len() > 1 {
                let rule = "one live job per dedupe key and slot";
                broken.push(format!(
                    "\"{rule}\": {job_type} {key:?} slot {slot}: {holders:?}"
                ));
            }
            if *slot == 1 && !slots.contains_key(&(job_type.clone(), key.clone(), 0)) {
                let rule = "nobody waits behind nobody";
                broken.push(format!("\"{rule}\": {job_type} {key:?}: {holders:?}"));
            }
        }
        if tally != self.counts {
            let counts = self.counts;
            broken.push(format!(
                "\"counts equal the jobs\": {tally:?}, counted {counts:?}"
            ));
        }
        broken
    }
}

/// Returns a job as an insert at `now` stores it, in slot 0 of its dedupe key if it has one.
fn fresh(job: &NewJob, now: Timestamp) -> JobRecord {
    use queue_runtime::job::DedupeUntil::Window;
    let dedupe = job
        .dedupe
        .as_ref()
        .filter(|dedupe| !matches!(dedupe.until, Window(_)));
    JobRecord {
        id: job.id,
        job_type: job.job_type.clone(),
        queue: job.queue.clone(),
        payload: job.payload.clone(),
        payload_schema: job.payload_schema,
        state: JobState::Queued,
        priority: job.priority,
        attempts: 0,
        max_attempts: job.max_attempts,
        crashes: 0,
        snoozes: 0,
        generation: 0,
        run_at: job.due.run_at(now),
        cancel_requested_at: None,
        locked_until: None,
        locked_by: None,
        lock_token: None,
        dedupe_key: dedupe.map(|dedupe| dedupe.key.clone()),
        dedupe_slot: 0,
        idempotency_key: job
            .idempotency
            .as_ref()
            .map(|idempotency| idempotency.key.clone()),
        cache: job.cache.clone(),
        deadline: job.deadline.map(|span| now.saturating_add(span)),
        last_outcome: None,
        dead_reason: None,
        last_error: None,
        trace_context: job.trace_context.clone(),
        created_at: now,
        updated_at: now,
        started_at: None,
        finished_at: None,
    }
}

/// Lists a record's fields by name; a new field does not compile until it is listed.
fn fields(record: &JobRecord) -> Vec<(&'static str, String)> {
    macro_rules! listed {
        ($($field:ident)+) => {{
            let JobRecord { $($field),+ } = record;
            vec![$((stringify!($field), format!("{:?}", $field))),+]
        }};
    }
    listed! {
        id job_type queue payload payload_schema state priority attempts max_attempts crashes
        snoozes generation run_at cancel_requested_at locked_until locked_by lock_token dedupe_key
        dedupe_slot idempotency_key cache deadline last_outcome dead_reason last_error
        trace_context created_at updated_at started_at finished_at
    }
}

fn shorten(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 300;
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
