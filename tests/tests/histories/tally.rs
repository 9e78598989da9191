//! What happened in a history, in words, so that a test can say what never did.

use std::collections::BTreeSet;
use std::time::Duration;

use queue_runtime::job::{Claimed, DedupeUntil, NewJob, OnDuplicate, Settled, Settlement};
use queue_runtime::store::{Cancelling, ClaimRequest, Extended, Inserted, Pruned, Replaying};
use queue_testkit::conformance::Picture;

/// Everything that happened so far.
#[derive(Clone, Default)]
pub(crate) struct Tally(BTreeSet<String>);

/// What histories are made to reach.
const EXPECTED: &str = "
    insert: new
    insert: the same id again
    insert: waits behind its key
    keep until finished: answered by a queued job
    keep until finished: answered by a processing job
    replace until finished: answered by a queued job
    rerun until finished: answered by a queued job
    keep until started: answered by a queued job
    replace until started: answered by a queued job
    rerun until started: answered by a queued job
    keep for a window: answered by a queued job
    keep for a window: answered by a processing job
    keep for a window: answered by a done job
    keep for a window: answered by a dead_letter job
    keep for a window: answered by a cancelled job
    replace for a window: answered by a queued job
    replace for a window: answered by a done job
    rerun for a window: answered by a queued job
    rerun for a window: answered by a processing job
    request: answered by a queued job
    request: answered by a processing job
    request: answered by a done job
    request: answered by a dead_letter job
    request: answered by a cancelled job
    request: conflict
    claim: nothing
    claim: a first attempt
    claim: a later attempt
    claim: a job that waited for its time
    claim: a suspect
    claim: several jobs
    settle success: done
    settle success: stale
    settle superseded: done
    settle superseded: stale
    settle retry: queued
    settle retry: dead_letter
    settle retry: cancelled
    settle retry: stale
    settle snooze: queued
    settle snooze: cancelled
    settle snooze: stale
    settle handed_back: queued
    settle handed_back: cancelled
    settle handed_back: stale
    settle permanent: dead_letter
    settle permanent: stale
    settle cancelled: cancelled
    settle cancelled: stale
    rescue: queued
    rescue: dead_letter
    rescue: cancelled
    rescue: stale
    extend: kept
    extend: lost
    extend: cancel
    cancel: at once
    cancel: requested
    cancel: final already
    cancel: not found
    replay: replayed
    replay: as new
    replay: a duplicate
    replay: not replayable
    replay: not found
    edit: replayed
    edit: as new
    edit: a duplicate
    edit: not replayable
    edit: another type
    edit: not found
    prune: jobs
    prune: idempotency keys
    prune: dedupe windows
    prune: nothing
    next due: never
    next due: now
    next due: later
    look: nothing
    look: a first page
    look: a later page
";

/// Lists what was expected and has not happened.
pub(crate) fn missing(reached: &BTreeSet<String>) -> Vec<&'static str> {
    let expected = EXPECTED.lines().map(str::trim);
    expected
        .filter(|line| !line.is_empty() && !reached.contains(*line))
        .collect()
}

impl Tally {
    fn saw(&mut self, what: impl Into<String>) {
        self.0.insert(what.into());
    }

    pub(crate) fn reached(self) -> BTreeSet<String> {
        self.0
    }

    pub(crate) fn inserted(&mut self, jobs: &[NewJob], replies: &[Inserted], known: &Picture) {
        for (job, reply) in jobs.iter().zip(replies) {
            match reply {
                Inserted::New { id } if known.jobs().contains_key(id) => {
                    self.saw("insert: the same id again");
                }
                Inserted::New { .. } => self.saw("insert: new"),
                Inserted::Conflict { .. } => self.saw("request: conflict"),
                // With both keys, nobody can tell which one answered.
                Inserted::Duplicate { state, .. } => {
                    let key = match (&job.dedupe, &job.idempotency) {
                        (None, Some(_)) => "request".to_owned(),
                        (Some(dedupe), None) => {
                            format!("{} {}", mode(dedupe.on_duplicate), until(dedupe.until))
                        }
                        _ => continue,
                    };
                    self.saw(format!("{key}: answered by a {state} job"));
                }
            }
        }
    }

    pub(crate) fn shown(&mut self, picture: &Picture) {
        if picture
            .jobs()
            .values()
            .any(|seen| seen.record.dedupe_slot == 1)
        {
            self.saw("insert: waits behind its key");
        }
    }

    pub(crate) fn claimed(&mut self, claimed: &[Claimed], request: &ClaimRequest) {
        match claimed.len() {
            0 => self.saw("claim: nothing"),
            1 => {}
            _ => self.saw("claim: several jobs"),
        }
        for run in claimed {
            self.saw(match run.attempt {
                1 => "claim: a first attempt",
                _ => "claim: a later attempt",
            });
            if run.run_at > run.created_at {
                self.saw("claim: a job that waited for its time");
            }
            if run.crashes >= request.suspects.crashes {
                self.saw("claim: a suspect");
            }
        }
    }

    pub(crate) fn settled(&mut self, settlements: &[Settlement], replies: &[Settled]) {
        for (settlement, reply) in settlements.iter().zip(replies) {
            let verb = match settlement.only_if_expired {
                true => "rescue".to_owned(),
                false => format!("settle {}", settlement.outcome.as_str()),
            };
            match reply {
                Settled::Applied(state) => self.saw(format!("{verb}: {state}")),
                Settled::Stale => self.saw(format!("{verb}: stale")),
                Settled::Held => self.saw(format!("{verb}: held")),
            }
        }
    }

    pub(crate) fn extended(&mut self, replies: &[Extended]) {
        for reply in replies {
            self.saw(match reply {
                Extended::Kept => "extend: kept",
                Extended::Lost => "extend: lost",
                Extended::Held => "extend: held",
                Extended::Cancel => "extend: cancel",
            });
        }
    }

    pub(crate) fn cancelling(&mut self, reply: Cancelling) {
        self.saw(match reply {
            Cancelling::Cancelled => "cancel: at once",
            Cancelling::Requested => "cancel: requested",
            Cancelling::AlreadyFinal(_) => "cancel: final already",
            Cancelling::NotFound => "cancel: not found",
        });
    }

    pub(crate) fn replaying(&mut self, verb: &str, reply: &Replaying, as_new: bool) {
        let what = match reply {
            Replaying::Replayed if as_new => "as new",
            Replaying::Replayed => "replayed",
            Replaying::Duplicate(_) => "a duplicate",
            Replaying::NotReplayable(_) => "not replayable",
            Replaying::OtherType(_) => "another type",
            Replaying::NotFound => "not found",
        };
        self.saw(format!("{verb}: {what}"));
    }

    pub(crate) fn pruned(&mut self, pruned: Pruned) {
        let kinds = [
            (pruned.jobs, "prune: jobs"),
            (pruned.idempotency_keys, "prune: idempotency keys"),
            (pruned.dedupe_windows, "prune: dedupe windows"),
        ];
        for (_, kind) in kinds.iter().filter(|(count, _)| *count > 0) {
            self.saw(*kind);
        }
        if pruned == Pruned::default() {
            self.saw("prune: nothing");
        }
    }

    pub(crate) fn next_due(&mut self, reply: Option<Duration>) {
        self.saw(match reply {
            None => "next due: never",
            Some(Duration::ZERO) => "next due: now",
            Some(_) => "next due: later",
        });
    }

    pub(crate) fn looked(&mut self, jobs: usize, after: bool) {
        self.saw(match (jobs, after) {
            (0, _) => "look: nothing",
            (_, false) => "look: a first page",
            (_, true) => "look: a later page",
        });
    }
}

fn mode(mode: OnDuplicate) -> &'static str {
    match mode {
        OnDuplicate::Keep => "keep",
        OnDuplicate::Replace => "replace",
        OnDuplicate::Rerun => "rerun",
    }
}

fn until(until: DedupeUntil) -> &'static str {
    match until {
        DedupeUntil::Finished => "until finished",
        DedupeUntil::Started => "until started",
        DedupeUntil::Window(_) => "for a window",
    }
}
