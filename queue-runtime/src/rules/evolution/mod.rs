//! What an edit of a job does to rows that wait, and to workers of the build before it.
//!
//! The contracts of two builds come in; a list of changes comes out, each judged in two directions:
//! whether the new build reads every row that the old one may have left, and whether workers of the
//! old build, which run on during a rolling deploy, read what the new one stores. With a higher
//! schema number old workers leave a row alone, since a claim names the highest schema that it
//! reads; rows of the old number are read by the new build as they are, or through its `upcast`.
//!
//! A change that cannot be judged counts as breaking. What a shape does not show is no change here:
//! see [`Opaque`](crate::job::shape::Opaque).

mod reads;
mod walk;

pub use reads::{Stored, reads};

use crate::job::Contract;

/// One difference between two builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The job's name in the old build, or in the new one if it is new.
    pub job: String,
    /// Where: a JSON path into the payload such as `$.order.lines[].sku`, or the name of a setting.
    pub path: String,
    /// What changed, in a sentence without its end.
    pub what: String,
    /// Whether the new build reads all rows that wait.
    pub rows: Verdict,
    /// Whether workers of the old build read what the new build stores.
    pub workers: Verdict,
}

/// What a change does in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Safe,
    /// It would break something, but for a higher schema number or an upcast.
    Covered,
    /// It breaks something, or nobody can tell.
    Breaking(Fault),
}

/// Why a change breaks something, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason.
    pub why: String,
    /// The remedy.
    pub cure: String,
}

/// A difference of two payloads before the schema numbers are looked at.
struct Finding {
    path: String,
    what: String,
    rows: Option<Fault>,
    workers: Option<Fault>,
}

impl Change {
    /// Whether it is breaking in either direction.
    pub fn is_breaking(&self) -> bool {
        self.rows.is_breaking() || self.workers.is_breaking()
    }
}

impl Verdict {
    /// Whether something breaks.
    pub fn is_breaking(&self) -> bool {
        matches!(self, Self::Breaking(_))
    }
}

/// Compares the jobs of two builds; changes come in the order of `old`, then what is new.
pub fn compare(old: &[Contract], new: &[Contract]) -> Vec<Change> {
    let mut changes = Vec::new();
    for job in old {
        let runs = |other: &&Contract| other.names().any(|name| name == job.name);
        match new.iter().find(runs) {
            Some(found) => changes.extend(compare_among(job, found, new)),
            None => changes.push(removed(job, old, new)),
        }
    }
    for job in new {
        let known = |other: &Contract| job.names().any(|name| name == other.name);
        if !old.iter().any(known) {
            changes.push(safe(&job.name, "job", "job added".to_owned()));
        }
    }
    changes
}

/// Compares two builds' contracts of one job, the only one of its program.
pub fn compare_jobs(old: &Contract, new: &Contract) -> Vec<Change> {
    compare_among(old, new, std::slice::from_ref(new))
}

/// Compares two builds' contracts of one job beside all jobs of the new build.
fn compare_among(old: &Contract, new: &Contract, all: &[Contract]) -> Vec<Change> {
    let mut changes = names(old, new);
    changes.extend(schema(old, new));
    changes.extend(settings(old, new));
    changes.extend(queue(old, new, all));
    let raised = new.schema > old.schema;
    let verdict = |fault: Option<Fault>, covered: bool| match fault {
        None => Verdict::Safe,
        Some(_) if covered => Verdict::Covered,
        Some(fault) => Verdict::Breaking(fault),
    };
    let findings = walk::walk(&old.payload, &new.payload).into_iter();
    changes.extend(findings.map(|finding| Change {
        job: old.name.clone(),
        path: finding.path,
        what: finding.what,
        rows: verdict(finding.rows, raised && new.upcast),
        workers: verdict(finding.workers, raised),
    }));
    changes
}

fn removed(job: &Contract, old: &[Contract], new: &[Contract]) -> Change {
    let unknown = |other: &&Contract| old.iter().all(|known| known.name != other.name);
    let alike = |other: &&Contract| other.payload == job.payload;
    let renamed = new.iter().filter(unknown).find(alike);
    let cure = match renamed {
        Some(other) => format!(
            "if it is `{}` now, add `alias = \"{}\"` to that job; else keep the handler until no row \
             of this type waits",
            other.name, job.name
        ),
        None => "keep the handler until no row of this type waits, or let another job run them: \
                 `alias = \"..\"`"
            .to_owned(),
    };
    breaking(
        &job.name,
        "job",
        "job removed".to_owned(),
        "rows of this type wait for ever: no worker of the new build claims them",
        &cure,
    )
}

fn names(old: &Contract, new: &Contract) -> Vec<Change> {
    let mut changes = Vec::new();
    if old.name != new.name {
        let keys = match (old.setting("dedupe"), old.setting("idempotency")) {
            (None, None) => "",
            (Some(_), None) => {
                "; a dedupe key is held per name, so for a while one job of each may be live"
            }
            (_, Some(_)) => {
                "; keys are held per name, so a request that was made under the old name and is \
                 repeated makes a second job. Keep the stored name if that does harm: \
                 `name = \"..\"`"
            }
        };
        let what = format!(
            "renamed to `{}`, which also runs rows of the old name{keys}",
            new.name
        );
        changes.push(safe(&old.name, "name", what));
    }
    for alias in &old.aliases {
        if new.names().all(|name| name != alias) {
            changes.push(breaking(
                &old.name,
                "aliases",
                format!("alias `{alias}` removed"),
                &format!("rows of the name `{alias}` wait for ever"),
                &format!("keep the alias until no row of the name `{alias}` waits"),
            ));
        }
    }
    for alias in &new.aliases {
        if old.names().all(|name| name != alias) {
            let what = format!("alias `{alias}` added");
            changes.push(safe(&old.name, "aliases", what));
        }
    }
    changes
}

fn schema(old: &Contract, new: &Contract) -> Vec<Change> {
    let mut changes = Vec::new();
    let job = &old.name;
    let what = format!("schema {} became {}", old.schema, new.schema);
    if new.schema < old.schema {
        changes.push(breaking(
            job,
            "schema",
            what,
            &format!(
                "no worker of the new build claims rows of schema {}",
                old.schema
            ),
            "never lower `schema`",
        ));
    } else if new.schema > old.schema {
        let steps = match old.upcast && new.upcast {
            true => format!(
                "; `upcast` is called for each step up to {} now",
                new.schema - 1
            ),
            false => String::new(),
        };
        changes.push(safe(job, "schema", format!("{what}{steps}")));
    }
    if old.upcast && !new.upcast {
        changes.push(breaking(
            job,
            "schema",
            "upcast removed".to_owned(),
            "rows of older schemas may wait, and are read as they are",
            "keep the `upcast` until none of them waits",
        ));
    } else if new.upcast && !old.upcast {
        changes.push(safe(job, "schema", "upcast added".to_owned()));
    }
    changes
}

fn settings(old: &Contract, new: &Contract) -> Vec<Change> {
    let mut keys: Vec<&String> = old
        .settings
        .iter()
        .chain(&new.settings)
        .map(|s| &s.0)
        .collect();
    keys.sort();
    keys.dedup();
    let word = |job: &Contract, key: &str| job.setting(key).unwrap_or("none").to_owned();
    keys.into_iter()
        .filter(|key| *key != QUEUE && old.setting(key) != new.setting(key))
        .map(|key| {
            let remark = remark(key);
            let what = format!("{} became {}{remark}", word(old, key), word(new, key));
            safe(&old.name, key, what)
        })
        .collect()
}

/// What a setting's change means for rows that wait.
fn remark(setting: &str) -> &'static str {
    match setting {
        "dedupe" | "idempotency" => {
            "; waiting rows keep the keys they have, so for a while an old and a new job do not see \
             that they are the same"
        }
        _ => "",
    }
}

/// The setting that says where a job waits.
const QUEUE: &str = "queue";

/// Another queue: unless a worker is told otherwise it serves the queues that its jobs name.
fn queue(old: &Contract, new: &Contract, all: &[Contract]) -> Option<Change> {
    let (was, is) = (old.setting(QUEUE)?, new.setting(QUEUE)?);
    let what = format!("{was} became {is}");
    if was == is {
        return None;
    }
    if all.iter().any(|job| job.setting(QUEUE) == Some(was)) {
        let what = format!("{what}; waiting rows stay in `{was}`, which another job names");
        return Some(safe(&old.name, QUEUE, what));
    }
    Some(breaking(
        &old.name,
        QUEUE,
        what,
        &format!("they stay in queue `{was}`, which no job names any more"),
        &format!(
            "let a worker serve both until none waits there: `.queues([\"{was}\", \"{is}\"])`"
        ),
    ))
}

fn safe(job: &str, path: &str, what: String) -> Change {
    Change {
        job: job.to_owned(),
        path: path.to_owned(),
        what,
        rows: Verdict::Safe,
        workers: Verdict::Safe,
    }
}

fn breaking(job: &str, path: &str, what: String, why: &str, cure: &str) -> Change {
    let fault = Fault {
        why: why.to_owned(),
        cure: cure.to_owned(),
    };
    Change {
        rows: Verdict::Breaking(fault),
        ..safe(job, path, what)
    }
}
