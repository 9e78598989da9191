//! Plans the insert of jobs that may have keys: what each meets is looked up by the store, what
//! becomes of it is the rule's, and what has to be written is collected by kind.
//!
//! A round is a run of jobs of which no two share an id or a key, so what one of them meets does
//! not depend on the others. The second of two equal keys begins a new round and sees the first.

use std::collections::HashSet;
use std::time::Duration;

use crate::job::{
    CacheKey, Dedupe, DedupeUntil, Idempotency, JobId, JobState, JobType, NewJob, OnDuplicate,
};
use crate::rules::dedupe::{Decision, Holder, Met, decide};
use crate::store::Inserted;

/// A job that is offered to a store, in whatever form the store wants it.
pub(crate) trait Offered {
    fn id(&self) -> JobId;

    /// The job's keys; `None` for a job that has neither, so that the store need not look.
    fn keys(&self) -> Option<Keys<'_>>;

    fn cache(&self) -> Option<&CacheKey>;
}

/// The keys of an offered job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    pub(crate) job_type: &'a JobType,
    pub(crate) idempotency: Option<&'a Idempotency>,
    pub(crate) dedupe: Option<&'a Dedupe>,
}

impl<'a> Keys<'a> {
    /// The dedupe key that the job's row holds; one that lasts for a window is kept elsewhere.
    pub(crate) fn held(self) -> Option<&'a str> {
        let dedupe = self.dedupe?;
        (!matches!(dedupe.until, DedupeUntil::Window(_))).then_some(dedupe.key.as_str())
    }

    /// The dedupe key that the job holds for a window, and the window.
    pub(crate) fn window(self) -> Option<(&'a str, Duration)> {
        let dedupe = self.dedupe?;
        match dedupe.until {
            DedupeUntil::Window(window) => Some((dedupe.key.as_str(), window)),
            _ => None,
        }
    }
}

impl Offered for NewJob {
    fn id(&self) -> JobId {
        self.id
    }

    fn keys(&self) -> Option<Keys<'_>> {
        let keys = Keys {
            job_type: &self.job_type,
            idempotency: self.idempotency.as_ref(),
            dedupe: self.dedupe.as_ref(),
        };
        (keys.idempotency.is_some() || keys.dedupe.is_some()).then_some(keys)
    }

    fn cache(&self) -> Option<&CacheKey> {
        self.cache.as_ref()
    }
}

impl<J: Offered> Offered for &J {
    fn id(&self) -> JobId {
        (**self).id()
    }

    fn keys(&self) -> Option<Keys<'_>> {
        (**self).keys()
    }

    fn cache(&self) -> Option<&CacheKey> {
        (**self).cache()
    }
}

/// How many jobs at the head, of at most `most`, do not meet one another; at least one.
pub(crate) fn round_len(jobs: &[impl Offered], most: usize) -> usize {
    let (mut ids, mut seen) = (HashSet::new(), HashSet::new());
    let mut meets_none = |job: &dyn Offered| {
        let Some(keys) = job.keys() else {
            return ids.insert(job.id());
        };
        let mut is_new =
            |kind, key: &str| seen.insert((kind, keys.job_type.clone(), key.to_owned()));
        let request = keys.idempotency;
        let request = request.is_none_or(|asked| is_new("idempotency", &asked.key));
        let place = keys.dedupe;
        let place = place.is_none_or(|asked| is_new("dedupe", &asked.key));
        ids.insert(job.id()) && request && place
    };
    jobs.iter()
        .take(most)
        .take_while(|job| meets_none(job))
        .count()
        .max(1)
}

/// What a store found about a job with keys.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    /// Whether a job of its id is stored already.
    pub(crate) stored: bool,
    pub(crate) met: Met,
}

/// A job that has a key. One that is gone without a remembered state was final, or it would still
/// be here.
pub(crate) fn holder(id: JobId, state: Option<JobState>, payload_differs: bool) -> Holder {
    Holder {
        id,
        state: state.unwrap_or(JobState::Done),
        payload_differs,
    }
}

/// An idempotency key to be bound to a job.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) job_type: &'a JobType,
    pub(crate) asked: &'a Idempotency,
    pub(crate) job: JobId,
    /// The state of a job that is final already.
    pub(crate) final_state: Option<JobState>,
}

/// A window of a dedupe key to be opened for a new job.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    pub(crate) job_type: &'a JobType,
    pub(crate) key: &'a str,
    pub(crate) job: JobId,
    pub(crate) span: Duration,
}

/// What a round writes, each kind for one statement.
#[derive(Debug)]
pub(crate) struct Plan<'a, J> {
    /// One per job of the round, in order.
    pub(crate) answers: Vec<Inserted>,
    /// Jobs to be stored, with the slot of their dedupe key.
    pub(crate) jobs: Vec<(&'a J, u8)>,
    pub(crate) bindings: Vec<Binding<'a>>,
    /// Windows to be opened.
    pub(crate) windows: Vec<Window<'a>>,
    /// Waiting jobs that take over a newcomer's payload.
    pub(crate) rewrites: Vec<(JobId, &'a J)>,
    /// Live jobs that a newcomer waits behind: they must not end before it is stored.
    pub(crate) behind: Vec<JobId>,
    /// Waiting jobs that run in place of a newcomer that asked for a run after its own time: they
    /// must not start before the newcomer's transaction is committed.
    pub(crate) instead: Vec<JobId>,
    /// Versions to announce; with the id of the job where nobody has looked whether that is
    /// stored already, since then it counts for nothing.
    pub(crate) versions: Vec<(&'a CacheKey, Option<JobId>)>,
}

/// Plans a round; `probed` has one element per job with [keys](Offered::keys), in order. `None` if
/// one is missing.
pub(crate) fn plan<J: Offered>(
    jobs: &[J],
    probed: impl IntoIterator<Item = Probed>,
) -> Option<Plan<'_, J>> {
    let mut probed = probed.into_iter();
    let mut plan = Plan {
        answers: Vec::with_capacity(jobs.len()),
        jobs: Vec::new(),
        bindings: Vec::new(),
        windows: Vec::new(),
        rewrites: Vec::new(),
        behind: Vec::new(),
        instead: Vec::new(),
        versions: Vec::new(),
    };
    for new in jobs {
        let Some(keys) = new.keys() else {
            plan.announce(new, true);
            plan.jobs.push((new, 0));
            plan.answers.push(Inserted::New { id: new.id() });
            continue;
        };
        let Probed { stored, met } = probed.next()?;
        match stored {
            true => plan.answers.push(Inserted::New { id: new.id() }),
            false => plan.add(new, keys, &met),
        }
    }
    Some(plan)
}

impl<'a, J: Offered> Plan<'a, J> {
    fn add(&mut self, new: &'a J, keys: Keys<'a>, met: &Met) {
        let decision = decide(keys.idempotency, keys.dedupe, met);
        if !matches!(decision, Decision::Conflict { .. }) {
            self.announce(new, false);
        }
        let answer = match decision {
            Decision::Insert { slot } => {
                self.jobs.push((new, slot));
                self.bind(keys, new.id(), None);
                if let Some((key, span)) = keys.window() {
                    self.windows.push(Window {
                        job_type: keys.job_type,
                        key,
                        job: new.id(),
                        span,
                    });
                }
                if slot == 1 {
                    let first = met.slots[0].as_ref();
                    self.behind.extend(first.map(|holder| holder.id));
                }
                Inserted::New { id: new.id() }
            }
            Decision::Merge {
                holder,
                rewrite,
                bind,
            } => {
                if rewrite {
                    self.rewrites.push((holder.id, new));
                }
                if is_rerun(keys) && is_in_a_slot(met, holder.id) {
                    self.instead.push(holder.id);
                }
                if bind {
                    let ended = Some(holder.state).filter(|state| state.is_final());
                    self.bind(keys, holder.id, ended);
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

    fn announce(&mut self, new: &'a J, may_be_stored: bool) {
        if let Some(cache) = new.cache() {
            self.versions.push((cache, may_be_stored.then(|| new.id())));
        }
    }

    fn bind(&mut self, keys: Keys<'a>, job: JobId, final_state: Option<JobState>) {
        if let Some(asked) = keys.idempotency {
            self.bindings.push(Binding {
                job_type: keys.job_type,
                asked,
                job,
                final_state,
            });
        }
    }
}

fn is_rerun(keys: Keys<'_>) -> bool {
    let mode = keys.dedupe.map(|dedupe| dedupe.on_duplicate);
    keys.held().is_some() && mode == Some(OnDuplicate::Rerun)
}

/// Whether a job waits in one of the places of a dedupe key.
fn is_in_a_slot(met: &Met, id: JobId) -> bool {
    let mut holders = met.slots.iter().flatten();
    holders.any(|holder| holder.id == id && holder.state == JobState::Queued)
}
