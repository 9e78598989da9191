//! Decides what to ask a store for, and keeps the claimed jobs that wait for a free slot.
//!
//! Slots and rates come in, a request goes out; claimed jobs come back and leave one by one, in
//! the order of the claim. Knows nothing of handlers or of how a store finds jobs.

use std::collections::VecDeque;
use std::time::Duration;

use crate::job::{Claimed, JobType, QueueName, WorkerId};
use crate::rules::prefetch;
use crate::store::{ClaimRequest, Suspects};

/// How long a rate is measured before it is believed.
const RATE_SPAN: Duration = Duration::from_millis(50);

/// The claiming side of one worker.
#[derive(Debug)]
pub(crate) struct Claims {
    worker: WorkerId,
    queues: Vec<QueueName>,
    job_types: Vec<(JobType, u32)>,
    lease: Duration,
    concurrency: usize,
    stock: VecDeque<Claimed>,
    may_have_more: bool,
    /// Whether a hint came since the last request went out; its answer may be older than that.
    woken: bool,
    suspect_crashes: u32,
    /// Suspects that are held, whether they run or wait for a slot.
    suspects: usize,
    rate: Rate,
}

impl Claims {
    pub(crate) fn new(
        worker: WorkerId,
        queues: Vec<QueueName>,
        job_types: Vec<(JobType, u32)>,
        lease: Duration,
        concurrency: usize,
        suspect_crashes: u32,
    ) -> Self {
        Self {
            worker,
            queues,
            job_types,
            lease,
            concurrency,
            stock: VecDeque::new(),
            may_have_more: true,
            woken: false,
            suspect_crashes,
            suspects: 0,
            rate: Rate::default(),
        }
    }

    /// Returns a request for as many jobs as fit beside `running` attempts and `unrecorded`
    /// results that the store has yet to take, which are leases as well. Each request starts at
    /// another queue, so that none waits behind a full one for ever. The limit is zero while
    /// nothing fits or while the store is known to have nothing.
    pub(crate) fn request(&mut self, running: usize, unrecorded: usize) -> ClaimRequest {
        let limit = match self.may_have_more {
            true => {
                let stock = self.stock.len() + unrecorded;
                prefetch::wanted(self.concurrency, running, stock, self.rate.per_second)
            }
            false => 0,
        };
        if limit > 0 {
            self.queues.rotate_left(1);
            self.woken = false;
        }
        self.request_of(limit)
    }

    /// Returns a request that names what this worker can run, for asking when something is due.
    pub(crate) fn request_of(&self, limit: usize) -> ClaimRequest {
        ClaimRequest {
            worker: self.worker.clone(),
            queues: self.queues.clone(),
            job_types: self.job_types.clone(),
            limit,
            lease: self.lease,
            suspects: Suspects {
                crashes: self.suspect_crashes,
                limit: usize::from(self.suspects == 0),
            },
        }
    }

    /// Takes over what a request of `limit` brought. Fewer than asked for means that the store
    /// has nothing more for now, unless a hint came meanwhile.
    pub(crate) fn arrived(&mut self, claimed: Vec<Claimed>, limit: usize) {
        if limit > 0 {
            self.may_have_more = claimed.len() == limit || self.woken;
        }
        self.suspects += claimed.iter().filter(|job| self.is_suspect(job)).count();
        self.stock.extend(claimed);
    }

    /// Lets go of a job whose attempt is over for this worker. After a suspect, the store may
    /// have another one that had to wait.
    pub(crate) fn released(&mut self, job: &Claimed) {
        if self.is_suspect(job) {
            self.suspects -= 1;
            self.woken();
        }
    }

    fn is_suspect(&self, job: &Claimed) -> bool {
        job.crashes >= self.suspect_crashes
    }

    /// Says that the store may have something again.
    pub(crate) fn woken(&mut self) {
        self.may_have_more = true;
        self.woken = true;
    }

    /// Says whether the store is known to have nothing for now.
    pub(crate) fn are_exhausted(&self) -> bool {
        !self.may_have_more
    }

    /// Takes the next job if one of the slots is free.
    pub(crate) fn next(&mut self, running: usize) -> Option<Claimed> {
        if running < self.concurrency {
            self.stock.pop_front()
        } else {
            None
        }
    }

    /// Takes everything that has not been started.
    pub(crate) fn give_up(&mut self) -> Vec<Claimed> {
        self.stock.drain(..).collect()
    }

    /// Counts attempts that ended, for the rate; `now` is monotonic.
    pub(crate) fn ended(&mut self, attempts: usize, now: Duration) {
        self.rate.count(attempts, now);
    }
}

/// Attempts per second over the recent past.
#[derive(Debug, Default)]
struct Rate {
    per_second: f64,
    counted: usize,
    since: Duration,
}

impl Rate {
    fn count(&mut self, attempts: usize, now: Duration) {
        self.counted += attempts;
        let span = now.saturating_sub(self.since);
        if span < RATE_SPAN {
            return;
        }
        let measured = self.counted as f64 / span.as_secs_f64();
        // A quarter of the past is kept, so that one slow span does not empty the stock.
        self.per_second = 0.75 * measured + 0.25 * self.per_second;
        self.counted = 0;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        let queues = ["a", "b"].map(|name| QueueName::new(name).expect("a name"));
        let worker = WorkerId::new("w").expect("a name");
        Claims::new(
            worker,
            queues.to_vec(),
            vec![],
            Duration::from_secs(60),
            4,
            2,
        )
    }

    fn names(request: &ClaimRequest) -> Vec<&str> {
        request.queues.iter().map(QueueName::as_str).collect()
    }

    #[test]
    fn each_claim_starts_at_another_queue() {
        let mut claims = claims();
        assert_eq!(names(&claims.request(0, 0)), ["b", "a"]);
        assert_eq!(names(&claims.request(0, 0)), ["a", "b"]);
    }

    #[test]
    fn an_empty_answer_stops_asking_until_something_wakes() {
        let mut claims = claims();
        assert_eq!(claims.request(1, 0).limit, 3);
        claims.arrived(vec![], 3);
        assert_eq!(
            (claims.request(1, 0).limit, claims.are_exhausted()),
            (0, true)
        );
        claims.arrived(vec![], 0);
        assert!(
            claims.are_exhausted(),
            "a settlement without a claim is no news"
        );
        claims.woken();
        assert_eq!(claims.request(1, 0).limit, 3);
    }

    #[test]
    fn a_hint_that_comes_while_a_claim_is_on_its_way_is_not_forgotten() {
        let mut claims = claims();
        let limit = claims.request(0, 0).limit;
        claims.woken();
        claims.arrived(vec![], limit);
        assert_eq!(claims.request(0, 0).limit, 4);
    }

    #[test]
    fn results_that_wait_to_be_recorded_count_like_stock() {
        assert_eq!(claims().request(1, 2).limit, 1);
        assert_eq!(claims().request(0, 500).limit, 0);
    }

    #[test]
    fn a_rate_follows_the_recent_past() {
        let mut rate = Rate::default();
        rate.count(10, Duration::from_millis(10));
        assert_eq!(rate.per_second, 0.0);
        rate.count(90, Duration::from_millis(100));
        assert_eq!(rate.per_second, 750.0);
        rate.count(0, Duration::from_millis(200));
        assert_eq!(rate.per_second, 187.5);
    }
}
