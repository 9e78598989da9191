//! Lists jobs page by page, and reads on past those that cannot be read: one bad row hides none of
//! the others.
//!
//! Says what a store has to read next and keeps what it has read. How a place in the list is kept,
//! and how a page is read, is the store's own affair.

use std::fmt::Display;

use crate::error::StoreError;
use crate::job::JobRecord;

/// How often one listing reads on because some jobs cannot be read.
const PAGES_MAX: usize = 100;

/// A job of a page: its place, and the job or what is wrong with it.
pub(crate) type Listed<A, I> = ((A, I), Result<JobRecord, StoreError>);

/// A listing on its way; a place is what the list is sorted by, such as when a job became final,
/// and then the job's id.
#[derive(Debug)]
pub(crate) struct Listing<A, I> {
    count: usize,
    before: Option<(A, I)>,
    listed: Vec<JobRecord>,
    pages: usize,
    is_complete: bool,
}

impl<A, I: Display> Listing<A, I> {
    /// Begins a listing of at most `count` jobs that stand behind a place, or from the first on.
    pub(crate) fn new(before: Option<(A, I)>, count: usize) -> Self {
        Self {
            count,
            before,
            listed: Vec::new(),
            pages: 0,
            is_complete: false,
        }
    }

    /// Returns what to read next: behind which place, and at most how many jobs; `None` if there is
    /// nothing more to read. Each page that is read has to be [added](Self::add).
    pub(crate) fn wanted(&mut self) -> Option<(Option<(A, I)>, usize)> {
        let left = self.count - self.listed.len();
        if self.is_complete || left == 0 || self.pages == PAGES_MAX {
            return None;
        }
        self.pages += 1;
        Some((self.before.take(), left))
    }

    /// Adds a page.
    pub(crate) fn add(&mut self, page: Vec<Listed<A, I>>) {
        self.is_complete = page.len() < self.count - self.listed.len();
        for ((at, id), record) in page {
            match record {
                Ok(record) => self.listed.push(record),
                Err(fault) => {
                    tracing::error!(job_id = %id, %fault, "left out of a list of jobs");
                }
            }
            self.before = Some((at, id));
        }
    }

    /// Returns the jobs that could be read, in the order of the list.
    pub(crate) fn jobs(self) -> Vec<JobRecord> {
        self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreErrorKind;

    /// Lists a stock of which every job is unreadable; returns the places and sizes asked for.
    fn asked(stock: u64, count: usize) -> Vec<(Option<u64>, usize)> {
        let mut listing = Listing::new(None, count);
        let mut asked = Vec::new();
        while let Some((before, left)) = listing.wanted() {
            let from = before.map_or(0, |(at, _)| at + 1);
            asked.push((before.map(|(at, _)| at), left));
            let page = (from..stock).take(left).map(|at| {
                let fault = StoreError::new(StoreErrorKind::Corrupt, "finished", "odd");
                ((at, at), Err(fault))
            });
            listing.add(page.collect());
        }
        assert_eq!(listing.jobs(), []);
        asked
    }

    #[test]
    fn a_listing_reads_on_behind_what_cannot_be_read_until_the_list_ends() {
        assert_eq!(asked(0, 2), [(None, 2)]);
        assert_eq!(asked(1, 2), [(None, 2)]);
        assert_eq!(asked(5, 2), [(None, 2), (Some(1), 2), (Some(3), 2)]);
        assert_eq!(asked(5, 0), []);
    }

    #[test]
    fn a_list_of_nothing_but_unreadable_jobs_is_given_up_after_a_while() {
        assert_eq!(asked(1_000, 1).len(), PAGES_MAX);
    }
}
