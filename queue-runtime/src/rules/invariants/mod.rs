//! Which rules stored data breaks: decided here for every store, which only reads and hands over.
//!
//! A store reads everything in one snapshot and tells it row by row; what is kept is bounded by
//! the number of findings per rule, not by the size of the store.

mod history;
mod keys;
mod record;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::history::{Line, Started, Stories, Told};
pub use self::keys::{Bound, Held};
use crate::job::{About, Finding, Invariant, LeaseToken, Verified};

/// How long after its end a lease is taken to be forgotten: rescues look every 15 s, and one that
/// is put off by a slow store comes within a minute.
pub const OVERDUE_MAX: Duration = Duration::from_mins(5);

/// Gathers findings, of each rule a bounded number.
#[derive(Debug)]
pub struct Findings {
    limit: usize,
    jobs: u64,
    found: BTreeMap<Invariant, Vec<Finding>>,
    more: Vec<Invariant>,
}

impl Findings {
    /// Starts with none; keeps at most `limit` of each rule.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            jobs: 0,
            found: BTreeMap::new(),
            more: Vec::new(),
        }
    }

    /// Counts a job that cannot be read; `fault` names the column.
    pub fn unreadable(&mut self, about: About, fault: String) {
        self.jobs += 1;
        self.add(Invariant::Readable, about, fault);
    }

    /// Takes note of a value beside the jobs that cannot be read; `fault` names the column.
    pub fn unreadable_beside(&mut self, about: About, fault: String) {
        self.add(Invariant::Readable, about, fault);
    }

    /// Takes note of a job that is both live and final.
    pub fn twice(&mut self, about: About) {
        self.add(
            Invariant::OneTable,
            about,
            "it is live and final".to_owned(),
        );
    }

    /// Takes note of a token that several attempts have.
    pub fn shared_token(&mut self, token: LeaseToken, attempts: u64) {
        let seen = format!("{attempts} attempts have it");
        self.add(Invariant::TokenOnce, About::Token(token), seen);
    }

    /// Compares the newest token that the store gave with the highest that is stored.
    pub fn counter(&mut self, given: Option<i64>, highest: Option<i64>) {
        let Some(highest) = highest.filter(|highest| given.is_none_or(|given| given < *highest))
        else {
            return;
        };
        let seen = match given {
            Some(given) => format!("it is stored, and the store has given none above {given}"),
            None => "it is stored, and the store has given none".to_owned(),
        };
        let about = About::Token(LeaseToken::new(highest));
        self.add(Invariant::TokenCounter, about, seen);
    }

    /// Returns what was found.
    pub fn verified(self) -> Verified {
        let mut verified = Verified {
            jobs: self.jobs,
            more: self.more,
            ..Verified::default()
        };
        for (invariant, mut findings) in self.found {
            findings.sort_by(|a, b| (&a.about, &a.seen).cmp(&(&b.about, &b.seen)));
            match invariant.is_warning() {
                true => verified.warnings.extend(findings),
                false => verified.violations.extend(findings),
            }
        }
        verified.more.sort();
        verified
    }

    fn add(&mut self, invariant: Invariant, about: About, seen: String) {
        let found = self.found.entry(invariant).or_default();
        if found.len() < self.limit {
            found.push(Finding {
                invariant,
                about,
                seen,
            });
        } else if !self.more.contains(&invariant) {
            self.more.push(invariant);
        }
    }
}
