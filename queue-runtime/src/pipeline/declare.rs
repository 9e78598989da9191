//! Collects the declared jobs into a registry that has no two jobs of one name.
//!
//! Definitions come in, from discovery or from an explicit list; a registry comes out, or every
//! fault of it at once, with the place of each declaration.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::handler::{DataMap, JobDef, Registration};
use crate::job::{JobType, QueueName};
use crate::rules::limits;

/// The jobs of one program by stored name, aliases included.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    by_name: BTreeMap<JobType, &'static JobDef>,
}

impl Registry {
    /// Collects every job that is linked into the program.
    ///
    /// # Errors
    /// All faults, one sentence each: names used twice, invalid names or numbers, or no job at
    /// all.
    pub fn discover() -> Result<Self, Vec<String>> {
        let registry = Self::of(inventory::iter::<Registration>().map(|found| found.0))?;
        if registry.by_name.is_empty() {
            return Err(vec![NO_JOBS.to_owned()]);
        }
        Ok(registry)
    }

    /// Collects the given jobs; the same definition may be given twice.
    ///
    /// # Errors
    /// All faults, one sentence each.
    pub fn of(defs: impl IntoIterator<Item = &'static JobDef>) -> Result<Self, Vec<String>> {
        let mut named: Vec<(&'static str, &'static JobDef)> = defs
            .into_iter()
            .flat_map(|def| {
                std::iter::once(def.name)
                    .chain(def.aliases.iter().copied())
                    .map(move |n| (n, def))
            })
            .collect();
        // Discovery gives no order; sorting makes messages repeatable.
        named.sort_by_key(|(name, def)| (*name, def.source.file, def.source.line));
        let mut faults = Vec::new();
        let mut registry = Self::default();
        for (name, def) in named {
            match JobType::new(name) {
                Err(error) => faults.push(format!("{error} (declared at {})", def.source)),
                Ok(job_type) => match registry.by_name.insert(job_type, def) {
                    Some(other) if !std::ptr::eq(other, def) => faults.push(format!(
                        "two jobs are named `{name}`: {} and {}. Give one of them another \
                         `name = \"..\"`",
                        other.source, def.source
                    )),
                    _ => {}
                },
            }
        }
        for def in registry.defs() {
            faults.extend(def_faults(def));
        }
        if faults.is_empty() {
            Ok(registry)
        } else {
            Err(faults)
        }
    }

    /// Returns the definition that a stored name runs.
    pub fn find(&self, job_type: &JobType) -> Option<&'static JobDef> {
        self.by_name.get(job_type).copied()
    }

    /// Returns every definition once, sorted by name.
    pub fn defs(&self) -> impl Iterator<Item = &'static JobDef> {
        self.by_name
            .iter()
            .filter(|(name, def)| name.as_str() == def.name)
            .map(|(_, def)| *def)
    }

    /// Returns every queue that a job names, once each: what a worker serves unless it is told
    /// which.
    pub fn queues(&self) -> Vec<QueueName> {
        let mut queues = Vec::new();
        for queue in self.defs().filter_map(|def| QueueName::new(def.queue).ok()) {
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
        queues
    }

    /// Returns every stored name that can be run with `data`, with the highest payload schema it
    /// reads. A job that was sent to another queue than its own stays there for a worker that
    /// has what it needs.
    pub fn claimable(&self, data: &DataMap) -> Vec<(JobType, u32)> {
        self.by_name
            .iter()
            .filter(|(_, def)| def.needs.iter().all(|need| (need.present)(data)))
            .map(|(name, def)| (name.clone(), def.schema))
            .collect()
    }

    /// Says which shared state is missing, for the jobs whose queue is served.
    pub fn missing_data(&self, data: &DataMap, queues: &[QueueName]) -> Vec<String> {
        self.defs()
            .filter(|def| queues.iter().any(|queue| queue.as_str() == def.queue))
            .flat_map(|def| def.needs.iter().map(move |need| (def, need)))
            .filter(|(_, need)| !(need.present)(data))
            .map(|(def, need)| {
                let type_name = (need.type_name)();
                format!(
                    "job `{}` ({}) needs `{type_name}` for argument `{}`; add `.data(..)` with a \
                     `{type_name}` to the worker's builder, or `.shared(..)` with a `Data` or `Arc` of \
                     one",
                    def.name, def.source, need.argument
                )
            })
            .collect()
    }

    /// Lists the jobs by package, for the worker's first log line.
    pub fn describe(&self) -> String {
        let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for def in self.defs() {
            packages
                .entry(def.source.package)
                .or_default()
                .push(def.name);
        }
        let mut text = String::new();
        for (package, names) in packages {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{separator}{package}: {}", names.join(", "));
        }
        text
    }
}

/// What a program that registers nothing is told.
pub const NO_JOBS: &str = "no jobs are registered in this program. A crate whose jobs are never \
    named in source is not linked: add `use my_jobs as _;` or `queue_runtime::link_jobs!(my_jobs);` (with your crate's name) to the \
    program's main file, or list the jobs with `.job::<SendWelcomeJob>()`";

/// Numbers that the attribute checks at compile time, for definitions written by hand.
fn def_faults(def: &JobDef) -> Vec<String> {
    let checks = [
        QueueName::new(def.queue)
            .map(|_| ())
            .map_err(|e| e.to_string()),
        limits::check_priority(def.priority).map_err(|e| e.to_string()),
        limits::check_retries(def.retries).map_err(|e| e.to_string()),
        limits::check_window("idempotency_for", def.idempotency_for).map_err(|e| e.to_string()),
        def.deadline
            .map_or(Ok(()), limits::check_deadline)
            .map_err(|e| e.to_string()),
        match def.timeout {
            Some(limit) if limit.is_zero() => {
                Err("timeout 0ns: an attempt needs time; use `None` for no limit".to_owned())
            }
            _ => Ok(()),
        },
    ];
    checks
        .into_iter()
        .filter_map(Result::err)
        .map(|fault| format!("job `{}` ({}): {fault}", def.name, def.source))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{Data, Inject, Need, RunCx, RunResult, Source};

    fn run(_: &RunCx) -> futures_util::future::BoxFuture<'_, RunResult> {
        Box::pin(async { Ok(Default::default()) })
    }

    const fn def(name: &'static str, line: u32) -> JobDef {
        let source = Source {
            package: "app",
            module: "app::jobs",
            file: "src/jobs.rs",
            line,
        };
        JobDef::new(name, run, source)
    }

    static MAIL: JobDef = def("mail", 3);
    static MAIL_AGAIN: JobDef = def("mail", 9);
    static RENAMED: JobDef = def("post", 12).aliases(&["mail"]);
    static LOUD: JobDef = def("loud", 20).priority(101).queue("Loud");

    fn faults(defs: &[&'static JobDef]) -> Vec<String> {
        Registry::of(defs.iter().copied()).expect_err("a fault")
    }

    #[test]
    fn two_jobs_of_one_name_are_refused_with_both_places() {
        let expected = "two jobs are named `mail`: src/jobs.rs:3 and src/jobs.rs:9. Give one of \
            them another `name = \"..\"`";
        assert_eq!(faults(&[&MAIL_AGAIN, &MAIL]), [expected]);
    }

    #[test]
    fn an_alias_counts_as_a_name() {
        assert!(faults(&[&MAIL, &RENAMED])[0].contains("src/jobs.rs:3 and src/jobs.rs:12"));
    }

    #[test]
    fn a_job_given_twice_is_one_job() {
        let registry = Registry::of([&MAIL, &MAIL]).expect("one job");
        assert_eq!(registry.defs().count(), 1);
    }

    /// No job is linked into the unit tests of this crate.
    #[test]
    fn the_registry_of_a_program_without_jobs_says_the_line_to_write() {
        let faults = Registry::discover().expect_err("no job");
        assert!(faults[0].contains("add `use my_jobs as _;`"), "{faults:?}");
    }

    #[test]
    fn every_fault_of_a_definition_is_told_at_once() {
        let faults = faults(&[&LOUD]);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("job `loud` (src/jobs.rs:20): queue name \"Loud\""));
        assert!(faults[1].ends_with("priority 101: must be from -100 to 100"));
    }

    #[test]
    fn missing_state_names_the_job_the_type_and_the_argument() {
        type Mailer = Data<String>;
        static NEEDY: JobDef = def("needy", 30).needs(&[Need {
            argument: "mailer",
            type_name: <Mailer as Inject>::type_name,
            present: <Mailer as Inject>::present,
        }]);
        let registry = Registry::of([&NEEDY]).expect("one job");
        let served = [QueueName::default_queue()];
        let missing = registry.missing_data(&DataMap::default(), &served);
        assert_eq!(missing.len(), 1);
        assert!(missing[0].starts_with(
            "job `needy` (src/jobs.rs:30) needs `alloc::string::String` for argument `mailer`"
        ));
        let mut data = DataMap::default();
        data.insert(Data::new(String::new()));
        assert!(registry.missing_data(&data, &served).is_empty());
        let other = [QueueName::new("other").expect("a name")];
        assert!(
            registry
                .missing_data(&DataMap::default(), &other)
                .is_empty()
        );
    }
}
