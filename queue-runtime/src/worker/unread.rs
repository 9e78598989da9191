//! Tells of waiting jobs that this worker leaves for others: of a type that it has no handler for,
//! or with a newer payload than it reads. They stay as they are, untouched. What waits in queues
//! that it does not serve is left to those that do.
//!
//! It looks at the start and at most once per prune interval, and tells when there are other types
//! or schemas than at the look before: a rolling deploy makes a line, and no noise.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Shared;
use crate::job::JobType;
use crate::store::{UNREAD_MAX, Unread};

/// How many types and schemas one line names.
const NAMED_MAX: usize = 20;

/// What was seen at the look before.
#[derive(Debug)]
pub(super) struct Looks {
    is_due: AtomicBool,
    seen: Mutex<BTreeSet<(JobType, u32)>>,
}

impl Looks {
    /// Starts with the first look due.
    pub(super) fn new() -> Self {
        Self {
            is_due: AtomicBool::new(true),
            seen: Mutex::default(),
        }
    }

    /// Makes the next look due.
    pub(super) fn again(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Looks if that is due. A store that does not answer is told of by the loops, and asked again
    /// in the next round.
    pub(super) async fn look(&self, shared: &Shared) {
        if !self.is_due.load(Ordering::Relaxed) {
            return;
        }
        let known = shared.registry.claimable(&shared.data);
        let unread = shared.backend.store().unread(&shared.queues, &known);
        let Ok(unread) = unread.await else {
            return;
        };
        self.is_due.store(false, Ordering::Relaxed);
        if self.are_news(&unread) {
            let reads = |job_type: &_| shared.registry.find(job_type).map(|def| def.schema);
            tracing::warn!(
                unread = described(&unread, reads),
                "jobs wait that this worker does not run, and stay as they are. If it should have a \
                 handler, name its crate in the program's main file: `use my_jobs as _;`"
            );
        }
    }

    /// Remembers what was seen, and says whether there is anything that was not at the look before.
    fn are_news(&self, unread: &[Unread]) -> bool {
        let now = unread
            .iter()
            .map(|unread| (unread.job_type.clone(), unread.payload_schema))
            .collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *seen, now);
        !seen.is_subset(&before)
    }
}

/// Names types and schemas with their counts, and why each is left alone; `reads` returns the
/// highest schema that the program's handler of a type reads.
fn described(unread: &[Unread], reads: impl Fn(&JobType) -> Option<u32>) -> String {
    let mut text = String::new();
    for row in unread.iter().take(NAMED_MAX) {
        let Unread {
            job_type,
            payload_schema,
            jobs,
        } = row;
        let separator = if text.is_empty() { "" } else { "; " };
        let least = if *jobs < UNREAD_MAX { "" } else { "at least " };
        let why = match reads(job_type) {
            None => "no handler here".to_owned(),
            Some(highest) if highest < *payload_schema => {
                format!("newer than schema {highest}, the highest that is read here")
            }
            Some(_) => "no `Data` here that its handler takes".to_owned(),
        };
        let _ = write!(
            text,
            "{separator}{least}{jobs} of {job_type} with schema {payload_schema}: {why}"
        );
    }
    if let Some(more) = unread.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        let _ = write!(text, "; and {more} more types or schemas");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(job_type: &str, payload_schema: u32, jobs: u64) -> Unread {
        Unread {
            job_type: JobType::new(job_type).expect("a name"),
            payload_schema,
            jobs,
        }
    }

    #[test]
    fn only_other_types_and_schemas_than_before_are_news() {
        let looks = Looks::new();
        let (a1, a2, b1) = (unread("a", 1, 5), unread("a", 2, 5), unread("b", 1, 5));
        let a1_grown = unread("a", 1, 9);
        let told: Vec<bool> = [
            vec![],
            vec![a1.clone()],
            vec![a1_grown],
            vec![a1.clone(), a2.clone()],
            vec![a2],
            vec![],
            vec![b1],
        ]
        .iter()
        .map(|seen| looks.are_news(seen))
        .collect();
        assert_eq!(told, [false, true, false, true, false, false, true]);
    }

    #[test]
    fn each_is_named_with_the_reason_why_it_is_left() {
        let rows = [
            unread("gone", 1, 3),
            unread("known", 2, 1_000),
            unread("other", 1, 2),
        ];
        let reads = |job_type: &JobType| (job_type.as_str() != "gone").then_some(1);
        assert_eq!(
            described(&rows, reads),
            "3 of gone with schema 1: no handler here; \
             at least 1000 of known with schema 2: newer than schema 1, the highest that is read \
             here; \
             2 of other with schema 1: no `Data` here that its handler takes"
        );
    }

    #[test]
    fn a_crowd_of_types_is_not_all_named() {
        let rows: Vec<_> = (1..=25).map(|schema| unread("gone", schema, 1)).collect();
        let text = described(&rows, |_| None);
        assert_eq!(text.matches("gone").count(), 20);
        assert!(text.ends_with("; and 5 more types or schemas"), "{text}");
        assert!(!described(&rows[..20], |_| None).contains("more types"));
    }
}
