//! What still has to be read by a program: counts by the shape of payloads, and the jobs.

use std::collections::BTreeMap;

use super::state::State;
use crate::job::{JobId, JobRecord, JobState, JobType, QueueName};
use crate::store::{UNREAD_LANES_MAX, UNREAD_MAX, Unread, Waiting};

impl State {
    pub(super) fn unread(&self, queues: &[QueueName], known: &[(JobType, u32)]) -> Vec<Unread> {
        let is_read = |job: &JobRecord| {
            let mut of_type = known.iter().filter(|(name, _)| *name == job.job_type);
            of_type.any(|(_, highest)| job.payload_schema <= *highest)
        };
        let mut lanes = BTreeMap::<_, u64>::new();
        for job in self.live.values().map(|job| &job.record) {
            let is_counted = job.state == JobState::Queued && job.dedupe_slot == 0;
            if is_counted && queues.contains(&job.queue) && !is_read(job) {
                let lane = (&job.queue, &job.job_type, job.payload_schema);
                *lanes.entry(lane).or_default() += 1;
            }
        }
        let mut unread = BTreeMap::<_, u64>::new();
        for ((_, job_type, schema), jobs) in lanes.into_iter().take(UNREAD_LANES_MAX) {
            *unread.entry((job_type, schema)).or_default() += jobs.min(UNREAD_MAX);
        }
        let row = |((job_type, payload_schema), jobs): ((&JobType, u32), u64)| Unread {
            job_type: job_type.clone(),
            payload_schema,
            jobs,
        };
        unread.into_iter().map(row).collect()
    }

    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let mut counted = BTreeMap::new();
        for job in self.undecided() {
            let counts = counted
                .entry((&job.job_type, &job.queue, job.payload_schema))
                .or_insert_with(|| Waiting {
                    job_type: job.job_type.clone(),
                    queue: job.queue.clone(),
                    payload_schema: job.payload_schema,
                    queued: 0,
                    processing: 0,
                    dead_letters: 0,
                });
            match job.state {
                JobState::Queued => counts.queued += 1,
                JobState::Processing => counts.processing += 1,
                _ => counts.dead_letters += 1,
            }
        }
        counted.into_values().collect()
    }

    pub(super) fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Vec<JobRecord> {
        let mut jobs: Vec<_> = self
            .undecided()
            .filter(|job| job.job_type == *job_type && job.queue == *queue)
            .filter(|job| job.payload_schema == schema)
            .filter(|job| after.is_none_or(|after| job.id > after))
            .collect();
        jobs.sort_by_key(|job| job.id);
        jobs.into_iter().take(count).cloned().collect()
    }

    /// Lists the jobs whose payload may be read again.
    fn undecided(&self) -> impl Iterator<Item = &JobRecord> {
        let jobs = self.live.values().chain(self.finished.values());
        let jobs = jobs.map(|job| &job.record);
        jobs.filter(|job| !job.state.is_final() || job.state == JobState::DeadLetter)
    }
}
