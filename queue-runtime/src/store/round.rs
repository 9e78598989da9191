//! Plans the insert of jobs that may have keys: what each meets is looked up by the store, what
//! becomes of it is the rule's, and what has to be written is collected by kind.
//!
//! A round is a run of jobs of which no two share an id or a key, so what one of them meets does
//! not depend on the others. The second of two equal keys begins a new round and sees the first.

use std::collections::HashSet;
use std::time::Duration;

use crate::job::{CacheKey, DedupeUntil, Idempotency, JobId, JobState, NewJob};
use crate::rules::dedupe::{Decision, Met, decide};
use crate::store::Inserted;

/// How many jobs at the head, of at most `most`, do not meet one another; at least one.
pub(crate) fn round_len(jobs: &[NewJob], most: usize) -> usize {
    let (mut ids, mut seen) = (HashSet::new(), HashSet::new());
    let mut meets_none = |job: &NewJob| {
        let mut is_new =
            |kind, key: &str| seen.insert((kind, job.job_type.as_str().to_owned(), key.to_owned()));
        let request = job.idempotency.as_ref();
        let request = request.is_none_or(|asked| is_new("idempotency", &asked.key));
        let place = job.dedupe.as_ref();
        let place = place.is_none_or(|asked| is_new("dedupe", &asked.key));
        ids.insert(job.id) && request && place
    };
    jobs.iter()
        .take(most)
        .take_while(|job| meets_none(job))
        .count()
        .max(1)
}

/// Says whether a job can meet another one by a key, so that the store has to look.
pub(crate) fn has_keys(job: &NewJob) -> bool {
    job.dedupe.is_some() || job.idempotency.is_some()
}

/// The dedupe key that a job's row holds; one that lasts for a window is kept elsewhere.
pub(crate) fn held_key(job: &NewJob) -> Option<&str> {
    let dedupe = job.dedupe.as_ref()?;
    (!matches!(dedupe.until, DedupeUntil::Window(_))).then_some(dedupe.key.as_str())
}

/// The dedupe key that a job holds for a window, and the window.
pub(crate) fn window_key(job: &NewJob) -> Option<(&str, Duration)> {
    let dedupe = job.dedupe.as_ref()?;
    match dedupe.until {
        DedupeUntil::Window(window) => Some((dedupe.key.as_str(), window)),
        _ => None,
    }
}

/// What a store found about a job with keys.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    /// Whether a job of its id is stored already.
    pub(crate) stored: bool,
    pub(crate) met: Met,
}

/// An idempotency key to be bound to a job.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) new: &'a NewJob,
    pub(crate) asked: &'a Idempotency,
    pub(crate) job: JobId,
    /// The state of a job that is final already.
    pub(crate) final_state: Option<JobState>,
}

/// What a round writes, each kind for one statement.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    /// One per job of the round, in order.
    pub(crate) answers: Vec<Inserted>,
    /// Jobs to be stored, with the slot of their dedupe key.
    pub(crate) jobs: Vec<(&'a NewJob, u8)>,
    pub(crate) bindings: Vec<Binding<'a>>,
    /// Jobs that open a window of their dedupe key.
    pub(crate) windows: Vec<&'a NewJob>,
    /// Waiting jobs that take over a newcomer's payload.
    pub(crate) rewrites: Vec<(JobId, &'a NewJob)>,
    /// Live jobs that a newcomer waits behind: they must not end before it is stored.
    pub(crate) behind: Vec<JobId>,
    /// Versions to announce; with the id of the job where nobody has looked whether that is
    /// stored already, since then it counts for nothing.
    pub(crate) versions: Vec<(&'a CacheKey, Option<JobId>)>,
}

/// Plans a round; `probed` has one element per job that [`has_keys`], in order. `None` if one is
/// missing.
pub(crate) fn plan(jobs: &[NewJob], probed: impl IntoIterator<Item = Probed>) -> Option<Plan<'_>> {
    let mut probed = probed.into_iter();
    let mut plan = Plan::default();
    for new in jobs {
        let (decision, met) = if has_keys(new) {
            let Probed { stored, met } = probed.next()?;
            if stored {
                plan.answers.push(Inserted::New { id: new.id });
                continue;
            }
            let decision = decide(new.idempotency.as_ref(), new.dedupe.as_ref(), &met);
            (decision, Some(met))
        } else {
            (Decision::Insert { slot: 0 }, None)
        };
        plan.add(new, decision, met);
    }
    Some(plan)
}

impl<'a> Plan<'a> {
    fn add(&mut self, new: &'a NewJob, decision: Decision, met: Option<Met>) {
        if let Some(cache) = &new.cache
            && !matches!(decision, Decision::Conflict { .. })
        {
            self.versions.push((cache, met.is_none().then_some(new.id)));
        }
        let answer = match decision {
            Decision::Insert { slot } => {
                self.jobs.push((new, slot));
                self.bind(new, new.id, None);
                if window_key(new).is_some() {
                    self.windows.push(new);
                }
                if slot == 1 {
                    let first = met.as_ref().and_then(|met| met.slots[0].as_ref());
                    self.behind.extend(first.map(|holder| holder.id));
                }
                Inserted::New { id: new.id }
            }
            Decision::Merge {
                holder,
                rewrite,
                bind,
            } => {
                if rewrite {
                    self.rewrites.push((holder.id, new));
                }
                if bind {
                    let ended = Some(holder.state).filter(|state| state.is_final());
                    self.bind(new, holder.id, ended);
                }
                Inserted::Duplicate {
                    existing: holder.id,
                    state: holder.state,
                    payload_differs: holder.payload_differs,
                }
            }
            Decision::Conflict { existing, fields } => Inserted::Conflict { existing, fields },
        };
        self.answers.push(answer);
    }

    fn bind(&mut self, new: &'a NewJob, job: JobId, final_state: Option<JobState>) {
        if let Some(asked) = &new.idempotency {
            self.bindings.push(Binding {
                new,
                asked,
                job,
                final_state,
            });
        }
    }
}
