//! Looking through everything for what breaks a rule.

use std::collections::BTreeMap;

use super::state::{ScopedKey, State};
use crate::job::{About, Attempt, JobId, JobRecord, LeaseToken, Verified};
use crate::rules::invariants::{Bound, Findings, Held, Line, Started, Stories, Told};
use crate::time::Timestamp;

impl State {
    pub(super) fn verify(&self, limit: usize, now: Timestamp) -> Verified {
        let mut findings = Findings::new(limit);
        for (jobs, is_live) in [(&self.live, true), (&self.finished, false)] {
            for job in jobs.values() {
                findings.record(&job.record, is_live, now);
            }
        }
        for id in self.live.keys().filter(|id| self.finished.contains_key(id)) {
            findings.twice(About::OneJob(*id));
        }
        self.histories(&mut findings);
        self.tokens(&mut findings);
        self.keys(&mut findings);
        findings.verified()
    }

    fn records(&self) -> impl Iterator<Item = &JobRecord> {
        let jobs = self.live.values().chain(self.finished.values());
        jobs.map(|job| &job.record)
    }

    fn histories(&self, findings: &mut Findings) {
        let mut histories = BTreeMap::<JobId, Vec<Line>>::new();
        for record in self.records() {
            let history = histories.entry(record.id).or_default();
            history.push(Line::OneJob(told(record)));
        }
        for (id, attempt) in self.attempts.values() {
            let history = histories.entry(*id).or_default();
            history.push(Line::Attempt(started(attempt)));
        }
        let mut stories = Stories::default();
        for (id, lines) in histories {
            for line in lines {
                stories.line(id, line, findings);
            }
        }
        stories.end(findings);
    }

    fn tokens(&self, findings: &mut Findings) {
        let mut jobs = BTreeMap::<LeaseToken, u64>::new();
        for token in self.records().filter_map(|record| record.lock_token) {
            *jobs.entry(token).or_default() += 1;
        }
        for (&token, &jobs) in jobs.iter().filter(|(_, jobs)| **jobs > 1) {
            findings.shared_token(token, jobs);
        }
        let highest = jobs.keys().chain(self.attempts.keys()).max();
        findings.counter(Some(self.newest_token), highest.map(|token| token.get()));
    }

    fn keys(&self, findings: &mut Findings) {
        let mut held = BTreeMap::<(&str, &str), [u64; 2]>::new();
        for record in self.live.values().map(|job| &job.record) {
            if let Some(key) = &record.dedupe_key {
                let jobs = held.entry((record.job_type.as_str(), key)).or_default();
                jobs[usize::from(record.dedupe_slot.min(1))] += 1;
            }
        }
        for ((job_type, key), [holders, behind]) in held {
            findings.held(Held {
                job_type: job_type.to_owned(),
                key: key.to_owned(),
                holders,
                behind,
            });
        }
        for (scoped, key) in &self.idempotency_keys {
            findings.idempotency_key(self.bound(scoped, key.job, key.expires_at.is_some()));
        }
        for (scoped, window) in &self.dedupe_windows {
            findings.window(self.bound(scoped, window.job, true));
        }
    }

    fn bound(&self, (job_type, key): &ScopedKey, job: JobId, ends: bool) -> Bound {
        let record = self.find(job).map(|job| &job.record);
        Bound {
            job_type: job_type.to_string(),
            key: key.clone(),
            job: job.to_string(),
            ends,
            is_live: record.map(|_| self.live.contains_key(&job)),
            type_of_job: record.map(|record| record.job_type.to_string()),
        }
    }
}

fn told(record: &JobRecord) -> Told {
    Told {
        about: About::OneJob(record.id),
        state: record.state,
        token: record.lock_token,
        attempts: record.attempts.into(),
        crashes: record.crashes.into(),
        snoozes: record.snoozes.into(),
    }
}

fn started(attempt: &Attempt) -> Started {
    Started {
        token: attempt.token,
        number: attempt.number.into(),
        is_open: attempt.finished_at.is_none(),
        outcome: attempt.outcome,
    }
}
