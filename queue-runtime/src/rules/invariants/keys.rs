//! What keys show together with the jobs that they belong to.

use super::Findings;
use crate::job::{About, Invariant};

/// How many live jobs have a dedupe key.
#[derive(Debug)]
pub struct Held {
    /// The job type that it belongs to.
    pub job_type: String,
    /// The key.
    pub key: String,
    /// Those that hold it.
    pub holders: u64,
    /// Those that wait behind it.
    pub behind: u64,
}

/// A key that answers with a job.
#[derive(Debug)]
pub struct Bound {
    /// The job type that it belongs to.
    pub job_type: String,
    /// The key.
    pub key: String,
    /// The job's id, as stored.
    pub job: String,
    /// Whether the key ends at some time, or is kept for its job.
    pub ends: bool,
    /// Where the job stands; `None` if it is not stored.
    pub is_live: Option<bool>,
    /// The job's own type, if it is stored.
    pub type_of_job: Option<String>,
}

impl Findings {
    /// Looks at a dedupe key.
    pub fn held(&mut self, held: Held) {
        let Held {
            job_type,
            key,
            holders,
            behind,
        } = held;
        let about = About::Key { job_type, key };
        if holders > 1 || behind > 1 {
            let seen = format!("live jobs that hold it: {holders}, that wait behind it: {behind}");
            self.add(Invariant::DedupeHolder, about.clone(), seen);
        }
        if holders == 0 && behind > 0 {
            let seen = "a job waits behind it, and nobody holds it".to_owned();
            self.add(Invariant::DedupeBehind, about, seen);
        }
    }

    /// Looks at an idempotency key.
    pub fn idempotency_key(&mut self, bound: Bound) {
        let job = &bound.job;
        let broken = match (bound.ends, bound.is_live) {
            (false, None) => Some((
                Invariant::KeyJob,
                format!("it does not end before its job {job}, which is not stored"),
            )),
            (true, Some(true)) => Some((
                Invariant::KeyEnd,
                format!("it ends at a set time, and its job {job} is unfinished"),
            )),
            // A key may be bound to a job just as that ends; the prune that removes the job sets
            // the key's end.
            (false, Some(_)) | (true, _) => None,
        };
        if let Some((invariant, seen)) = broken {
            self.add(invariant, bound.about(), seen);
        }
        self.type_of(bound);
    }

    /// Looks at a dedupe window. It may outlive its job.
    pub fn window(&mut self, bound: Bound) {
        self.type_of(bound);
    }

    fn type_of(&mut self, bound: Bound) {
        let Some(other) = bound.type_of_job.as_ref() else {
            return;
        };
        if *other != bound.job_type {
            let seen = format!("its job {} is of the type {other:?}", bound.job);
            self.add(Invariant::KeyType, bound.about(), seen);
        }
    }
}

impl Bound {
    fn about(&self) -> About {
        About::Key {
            job_type: self.job_type.clone(),
            key: self.key.clone(),
        }
    }
}
