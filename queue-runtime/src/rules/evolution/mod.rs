//! What an edit of a job does to rows that wait, and to workers of the build before it.
//!
//! The contracts of two builds come in; a list of changes comes out, each judged in two directions:
//! whether the new build reads every row that the old one may have left, and whether workers of the
//! old build, which run on during a rolling deploy, read what the new one stores. With a higher
//! schema number old workers leave a row alone, since a claim names the highest schema that it
//! reads; rows of the old number are read by the new build as they are, or through its `upcast`.
//!
//! A change that cannot be judged counts as breaking.

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
            Some(found) => changes.extend(compare_jobs(job, found)),
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

/// Compares two builds' contracts of one job.
pub fn compare_jobs(old: &Contract, new: &Contract) -> Vec<Change> {
    let mut changes = names(old, new);
    changes.extend(schema(old, new));
    changes.extend(settings(old, new));
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
        let what = format!(
            "renamed to `{}`, which also runs rows of the old name; a dedupe key is held per name, so for \
             a while one job of each may be live",
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
        changes.push(safe(job, "schema", what));
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
        .filter(|key| old.setting(key) != new.setting(key))
        .map(|key| {
            let remark = remark(key, &word(old, key));
            let what = format!("{} became {}{remark}", word(old, key), word(new, key));
            safe(&old.name, key, what)
        })
        .collect()
}

/// What a setting's change means for rows that wait.
fn remark(setting: &str, was: &str) -> String {
    match setting {
        "queue" => format!(
            "; waiting rows stay in queue `{was}`: let a worker serve it until they are done"
        ),
        "dedupe" | "idempotency" => {
            "; waiting rows keep the keys they have, so for a while an old and a \
             new job do not see that they are the same"
                .to_owned()
        }
        _ => String::new(),
    }
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
