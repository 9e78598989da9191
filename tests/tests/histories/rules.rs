//! The rules of a job's life, checked from outside: what was answered against what is shown.

use std::collections::{BTreeMap, BTreeSet};

use queue_runtime::job::{Claimed, JobId, JobState, JobType, NewJob, Settlement};
use queue_runtime::store::{ClaimRequest, Inserted};
use queue_runtime::time::Timestamp;
use queue_testkit::conformance::Picture;

use super::offers::CRASHES_MAX;

/// What was seen and answered so far.
#[derive(Default)]
pub(crate) struct Rules {
    before: Picture,
    accepted: u64,
    ever_final: BTreeSet<JobId>,
    pruned: u64,
    replayed: Option<JobId>,
    prunes: bool,
    /// The job that each idempotency key answered with last.
    requests: BTreeMap<(JobType, String), JobId>,
    newest_token: i64,
}

impl Rules {
    /// What was shown after the last step.
    pub(crate) fn before(&self) -> &Picture {
        &self.before
    }

    /// An idempotency key outlives its unfinished job: while that runs or waits, the key's next
    /// request is never new.
    pub(crate) fn inserted(&mut self, jobs: &[NewJob], replies: &[Inserted]) -> Result<(), String> {
        for (job, reply) in jobs.iter().zip(replies) {
            let (new, answering) = match reply {
                Inserted::New { id } => (!self.before.jobs().contains_key(id), *id),
                Inserted::Duplicate { existing, .. } => (false, *existing),
                Inserted::Conflict { .. } => continue,
            };
            self.accepted += u64::from(new);
            if !new && answering == job.id {
                continue; // The same id again: nothing was asked anew.
            }
            let Some(asked) = &job.idempotency else {
                continue;
            };
            let key = (job.job_type.clone(), asked.key.clone());
            if let Some(holder) = self.requests.insert(key, answering)
                && holder != answering
                && !self.was_final(holder)
            {
                let key = &asked.key;
                return Err(format!(
                    "{key:?} left its unfinished job {holder}: {reply:?}"
                ));
            }
        }
        Ok(())
    }

    /// A claimed job waited, was due, and gets a token above all before it.
    pub(crate) fn claimed(
        &mut self,
        claimed: &[Claimed],
        request: &ClaimRequest,
        settled_before: &[Settlement],
    ) -> Result<(), String> {
        if claimed.len() > request.limit {
            return Err(format!(
                "{} jobs for a limit of {}",
                claimed.len(),
                request.limit
            ));
        }
        let newest = self.newest_token;
        for run in claimed {
            let leased = self.before.jobs().get(&run.id).is_some_and(|seen| {
                seen.record.state == JobState::Processing
                    && settled_before
                        .iter()
                        .all(|settlement| settlement.id != run.id)
            });
            if leased || run.token.get() <= newest || run.run_at > run.claimed_at {
                return Err(format!("claimed against the rules: {run:?}"));
            }
            self.newest_token = self.newest_token.max(run.token.get());
        }
        Ok(())
    }

    pub(crate) fn may_replay(&mut self, id: JobId) {
        self.replayed = Some(id);
    }

    pub(crate) fn pruned(&mut self, jobs: u64) {
        self.pruned += jobs;
        self.prunes = true;
    }

    /// Lists the jobs that the last step stored, changed or removed.
    pub(crate) fn changed(&self, picture: &Picture) -> Vec<JobId> {
        let (before, after) = (self.before.jobs(), picture.jobs());
        let ids: BTreeSet<JobId> = before.keys().chain(after.keys()).copied().collect();
        let changed = |id: &JobId| before.get(id) != after.get(id);
        ids.into_iter().filter(changed).collect()
    }

    /// Checks what the store shows after a step.
    pub(crate) fn hold(&mut self, picture: Picture, now: Timestamp) -> Result<(), String> {
        let mut broken = picture.broken_rules();
        let total = picture.jobs().len() as u64 + self.pruned;
        if total != self.accepted {
            let accepted = self.accepted;
            broken.push(format!(
                "{accepted} jobs were accepted, {total} are shown or pruned"
            ));
        }
        for (id, seen) in self.before.jobs() {
            let shown = picture.jobs().get(id);
            let stays = match shown {
                None => self.prunes && seen.record.state.is_final(),
                Some(_) if !seen.record.state.is_final() => true,
                Some(shown) if shown == seen => true,
                Some(shown) => {
                    self.replayed == Some(*id)
                        && shown.record.state == JobState::Queued
                        && shown.attempts == seen.attempts
                }
            };
            if !stays {
                broken.push(format!("{:?} became {shown:?}", seen.record));
            }
        }
        for (id, seen) in picture.jobs() {
            let record = &seen.record;
            if record.state.is_final() {
                self.ever_final.insert(*id);
            }
            if record.crashes > CRASHES_MAX || record.updated_at > now {
                broken.push(format!("out of bounds: {record:?}"));
            }
        }
        self.before = picture;
        self.replayed = None;
        self.prunes = false;
        if broken.is_empty() {
            Ok(())
        } else {
            Err(broken.join(";\n"))
        }
    }

    /// Says whether a key may have left this job: once its job is final, a key runs out with its
    /// window, and a replay cannot bring back one that retention has removed.
    fn was_final(&self, id: JobId) -> bool {
        self.ever_final.contains(&id)
    }
}
