//! Everything that is known about a world after it has come to rest, as values: what was asked for,
//! what the store says, and what the processes wrote down.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use queue_runtime::job::Attempt;
use queue_runtime::{JobId, JobState, Timestamp};

use crate::jobs::Kind;
use crate::ledger::{Entry, Run};

/// A world at rest.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What was asked for, by number.
    pub requests: BTreeMap<u64, Asked>,
    /// The jobs that a request, the store or a ledger knows.
    pub jobs: BTreeMap<JobId, Seen>,
    /// Looks at the store while it worked.
    pub samples: Vec<Sample>,
    /// How many jobs the store counts at rest, in all states.
    pub counted: u64,
    /// The boots that were killed, frozen, or aborted by a poisonous job.
    pub interrupted: BTreeSet<String>,
    /// Jobs that were removed after their retention.
    pub pruned: BTreeSet<JobId>,
    /// How long it took from the last fault until everything was final, and how long it may.
    pub drained: Option<(Duration, Duration)>,
    /// The most crashes in a row that the workers allow.
    pub crashes_max: u32,
}

/// A request, and what its producer was told.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// What was asked for.
    pub kind: Option<Kind>,
    /// The jobs that answered, and whether each existed before.
    pub accepted: Vec<(JobId, bool)>,
    /// Whether it was refused.
    pub is_refused: bool,
}

/// A job, as seen from all sides.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What was asked for under this id.
    pub kind: Option<Kind>,
    /// What the store says; `None` if it has no such job.
    pub record: Option<Record>,
    /// Its attempts as the store keeps them; `None` if nobody asked, since it had one that its
    /// ledger and its record agree on.
    pub attempts: Option<Vec<Attempt>>,
    /// Lines of ledgers about it, with the boots that wrote them.
    pub lines: Vec<(String, Entry)>,
    /// The tokens under which its effect stands in the application's table.
    pub booked: Vec<i64>,
    /// What the store said when it was seen to be final, early.
    pub was_final: Option<Record>,
}

/// What the store says about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub state: JobState,
    /// Attempts that count.
    pub attempts: u32,
    /// How many there may be.
    pub attempts_max: u32,
    /// Crashes in a row.
    pub crashes: u32,
    /// The newest lease token.
    pub token: Option<i64>,
    /// The dedupe key that it held.
    pub dedupe_key: Option<String>,
    /// When its first attempt started.
    pub started_at: Option<Timestamp>,
    /// When it became final.
    pub finished_at: Option<Timestamp>,
}

/// A look at the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Jobs that producers had been told of before it.
    pub told: u64,
    /// Jobs that the store counted, in all states.
    pub counted: u64,
    /// Jobs that producers had asked for after it.
    pub asked: u64,
}

impl Seen {
    /// The handlers' starts, each with its boot.
    pub fn starts(&self) -> impl Iterator<Item = (&str, Run)> {
        self.runs(|entry| match entry {
            Entry::Start(run) => Some(*run),
            _ => None,
        })
    }

    /// The effects, each with its boot.
    pub fn effects(&self) -> impl Iterator<Item = (&str, Run)> {
        self.runs(|entry| match entry {
            Entry::Effect(run) => Some(*run),
            _ => None,
        })
    }

    fn runs(&self, of: impl Fn(&Entry) -> Option<Run>) -> impl Iterator<Item = (&str, Run)> {
        let run = move |(boot, entry): &'_ (String, Entry)| Some((boot.len(), of(entry)?));
        self.lines.iter().filter_map(move |line| {
            let (length, found) = run(line)?;
            Some((&line.0[..length], found))
        })
    }
}

impl History {
    /// Takes over the lines of the ledgers.
    pub fn add_lines(&mut self, lines: impl IntoIterator<Item = (String, Entry)>) {
        for (boot, entry) in lines {
            let job = match entry {
                Entry::Intent(n, kind, job) => {
                    self.requests.entry(n).or_default().kind = Some(kind);
                    self.jobs.entry(job).or_default().kind = Some(kind);
                    job
                }
                Entry::Accepted(n, job, duplicate) => {
                    let request = self.requests.entry(n).or_default();
                    request.accepted.push((job, duplicate));
                    job
                }
                Entry::Refused(n) => {
                    self.requests.entry(n).or_default().is_refused = true;
                    continue;
                }
                Entry::Unknown(_) => continue,
                Entry::Start(run) | Entry::Effect(run) | Entry::End(run) => run.job,
                Entry::Final(job, ..) | Entry::Lost(job, _) | Entry::Rescued(job, _) => job,
            };
            self.jobs.entry(job).or_default().lines.push((boot, entry));
        }
    }

    /// All that is known about a job, for a person.
    pub fn tell(&self, id: JobId) -> String {
        let Some(seen) = self.jobs.get(&id) else {
            return format!("job {id}: nothing is known");
        };
        let mut told = format!("job {id} ({:?})\n  store {:?}\n", seen.kind, seen.record);
        if let Some(early) = &seen.was_final {
            let _ = writeln!(told, "  seen final before as {early:?}");
        }
        for attempt in seen.attempts.iter().flatten() {
            let _ = writeln!(
                told,
                "  attempt {} token {} of {} from {} to {:?}: {:?} {:?}",
                attempt.number,
                attempt.token,
                attempt.worker,
                attempt.started_at,
                attempt.finished_at.map(|at| at.to_string()),
                attempt.outcome,
                attempt.error
            );
        }
        if !seen.booked.is_empty() {
            let _ = writeln!(told, "  effects in its table, by token: {:?}", seen.booked);
        }
        for (boot, entry) in &seen.lines {
            let _ = writeln!(told, "  {boot}: {entry}");
        }
        told
    }

    /// Runs beyond the first of each job that had an effect twice, and how many those are.
    pub fn double_effects(&self) -> usize {
        let effects = |seen: &Seen| seen.effects().count() + seen.booked.len();
        self.jobs.values().filter(|seen| effects(seen) > 1).count()
    }

    /// Attempts that started because the one before was lost.
    pub fn re_runs(&self) -> usize {
        use queue_runtime::job::OutcomeKind::Lost;
        let lost = |attempt: &&Attempt| attempt.outcome == Some(Lost);
        let attempts = self
            .jobs
            .values()
            .flat_map(|seen| seen.attempts.iter().flatten());
        attempts.filter(lost).count()
    }
}
